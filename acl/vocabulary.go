package acl

// Vocabulary has the commands and categories that rules may name. A subcommand is a command of its
// own, with the name "container|subcommand". All names are in lower case.
type Vocabulary interface {
	// Commands returns the number of commands. The commands have the numbers from 0 to that number
	// minus one.
	Commands() int
	// Command returns the number of the command called name, and whether the command exists.
	Command(name string) (id int, ok bool)
	// Subcommands returns the numbers of the subcommands of the container with the number id; nil
	// for any other command.
	Subcommands(id int) []int
	// Category returns the numbers of the commands in the category called name, and whether the
	// category exists.
	Category(name string) (ids []int, ok bool)
}

// Access is a set that says how a command accesses a key.
type Access uint8

const (
	// Read says that the command reveals a part of the value.
	Read Access = 1 << iota
	// Write says that the command changes or deletes the value.
	Write
)

// Denied is the reason why a user may not make a call.
type Denied uint8

// These are the reasons of a refusal, in the order of the checks. If several selectors refuse a
// call, the largest reason is reported: the reason of the selector that got furthest.
const (
	DeniedNothing Denied = iota
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel
)

// String returns the name of the reason in ACL LOG.
func (d Denied) String() string {
	return [...]string{"", "command", "key", "auth", "channel"}[d]
}
