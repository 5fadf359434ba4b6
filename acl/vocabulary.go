package acl

// Vocabulary has the commands and categories that rules name. A subcommand is a separate command
// with the name "container|subcommand". Names are in lower case.
type Vocabulary interface {
	// Commands returns the number of commands. Commands have the numbers below it.
	Commands() int
	// Command returns the number of a command.
	Command(name string) (id int, ok bool)
	// Subcommands returns the numbers of the subcommands of a container, nil for any other command.
	Subcommands(id int) []int
	// Category returns the numbers of the commands of a category.
	Category(name string) (ids []int, ok bool)
}

// Access is how a command accesses a key.
type Access uint8

const (
	// Read says that the command reveals a part of the value.
	Read Access = 1 << iota
	// Write says that it changes or deletes the value.
	Write
)

// Denied is the reason why a user may not make a call.
type Denied uint8

// The reasons of a refusal, in the order of the checks. If several selectors refuse a call, the
// largest reason is reported: that of the selector that got furthest.
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
