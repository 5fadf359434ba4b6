package blocking

import "github.com/cellserver/cellserver/commands/command"

// Texts that the entries of all pop commands share.
const (
	PopSyntax  = "key [key ...] timeout"
	ManyReply  = "an array of key and an array of elements, or null"
	complexity = "O(N log M) for N elements of M"
)

// ButLast is the KeySpec of a pop: all arguments are keys except the last, which is the timeout.
var ButLast = command.KeySpec{First: 1, Last: -2, Step: 1}

// Entries returns a function that makes the command entries of a group that pops elements.
func Entries(group string, cats command.Category) func(name string, arity int, f command.Flag, keys command.KeySpec, syntax, summary, reply string, run func(*command.Call)) *command.Command {
	return func(name string, arity int, f command.Flag, keys command.KeySpec, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: command.FlagWrite | f, Keys: keys, Categories: cats, Group: group, Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
}
