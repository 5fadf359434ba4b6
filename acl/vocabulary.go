package acl

// Vocabulary is what rules can speak of. A subcommand is a command of its own, named
// "container|subcommand". Names are in lower case.
type Vocabulary interface {
	// Commands is how many commands there are. Their numbers are below it.
	Commands() int
	// Command returns the number of a command.
	Command(name string) (id int, ok bool)
	// Subcommands returns the numbers of the subcommands of a container, and nil for a
	// command that is none.
	Subcommands(id int) []int
	// Category returns the numbers of the commands of a category.
	Category(name string) (ids []int, ok bool)
}

// Access is what a command does with a key.
type Access uint8

const (
	// Read says that the command shows something of the value.
	Read Access = 1 << iota
	// Write says that it changes or deletes the value.
	Write
)

// Denied says what a user may not do.
type Denied uint8

// The reasons of a refusal. One that is larger says more: of several selectors the one that
// comes furthest is told.
const (
	DeniedNothing Denied = iota
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel
)

// String returns the reason as ACL LOG spells it.
func (d Denied) String() string {
	return [...]string{"", "command", "key", "auth", "channel"}[d]
}
