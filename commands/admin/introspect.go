package admin

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

func introspectCommands() []*command.Command {
	sub := func(name string, arity int, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: "command|" + name, Arity: arity, Flags: command.FlagLoading | command.FlagStale, Categories: command.CatConnection, Group: "server",
			Summary: summary, Syntax: syntax, Since: "1.0.0", Complexity: "O(N)", Reply: reply, Run: run,
		}
	}
	// The reply has much text for each command that is named.
	docs := sub("docs", -2, "[command-name ...]", "Returns the documentation of commands.", "a map by command name", commandDocs)
	info := sub("info", -2, "[command-name ...]", "Returns information about the named commands.", "ten fields or null for each", commandInfo)
	docs.WordWork, info.WordWork = 50, 100
	return []*command.Command{{
		Name: "command", Arity: -1, Flags: command.FlagLoading | command.FlagStale, Categories: command.CatConnection, Group: "server",
		Summary: "Returns detailed information about all commands.",
		Since:   "1.0.0", Complexity: "O(N)", Reply: "an array with ten fields for each command", Run: commandAll,
		Sub: []*command.Command{
			sub("count", 2, "", "Returns how many commands there are.", "an integer", commandCount),
			docs,
			sub("getkeys", -3, "command [arg ...]", "Returns the keys of a full command.", "an array of keys", commandGetKeys),
			sub("getkeysandflags", -3, "command [arg ...]", "Returns the keys of a full command and how they are used.", "an array of pairs", commandGetKeys),
			info,
			sub("list", -2, "[FILTERBY <MODULE name | ACLCAT category | PATTERN pattern>]", "Returns the names of commands.", "an array of names", commandList),
		},
	}}
}

func commandAll(c *command.Call) {
	t := c.Server.Commands
	c.W.Raw(t.Info.Keep(c.W.Proto, t.WriteInfo))
}

func commandCount(c *command.Call) { c.W.Int(int64(len(c.Server.Commands.Top()))) }

func commandInfo(c *command.Call) {
	if len(c.Args) == 2 {
		commandAll(c)
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if cmd := c.Server.Commands.Find(name); cmd != nil {
			cmd.WriteInfo(c.W)
		} else {
			c.W.Null()
		}
	}
}

func commandDocs(c *command.Call) {
	t := c.Server.Commands
	if len(c.Args) == 2 {
		c.W.Raw(t.Docs.Keep(c.W.Proto, func(w *resp.Writer) { command.WriteAllDocs(w, t.Sorted) }))
		return
	}
	var cmds []*command.Command
	for _, name := range c.Args[2:] {
		if cmd := t.Find(name); cmd != nil {
			cmds = append(cmds, cmd)
		}
	}
	command.WriteAllDocs(c.W, cmds)
}

func commandGetKeys(c *command.Call) {
	args := c.Args[2:]
	cmd := c.Server.Commands.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		if sub := cmd.Subcommand(args[1]); sub != nil {
			cmd = sub
		}
	}
	switch {
	case cmd == nil:
		c.Fail("ERR Invalid command specified")
		return
	case !cmd.ArityOK(len(args)):
		c.Fail("ERR Invalid number of arguments specified for command")
		return
	case cmd.Keys.None():
		c.Fail("ERR The command has no key arguments")
		return
	}
	at := cmd.Keys.Positions(args)
	if d := cmd.Keys.Derived; d != nil {
		args, at = [][]byte{d.Append(nil, args)}, []int{0}
	}
	if len(at) == 0 && !cmd.RunsScript() { // scripts may have no keys
		c.Fail("ERR Invalid arguments specified for command")
		return
	}
	withFlags := c.Cmd.Name == "command|getkeysandflags"
	c.W.Array(len(at))
	for n, i := range at {
		if withFlags {
			c.W.Array(2)
		}
		c.W.Bulk(args[i])
		if withFlags {
			flags := cmd.Keys.UseAt(args, n).Names()
			c.W.Set(len(flags))
			for _, f := range flags {
				c.W.Status(f)
			}
		}
	}
}

func commandList(c *command.Call) {
	wanted := func(*command.Command) bool { return true }
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 5 && arg.IsWord(c.Args[2], "FILTERBY"):
		value := c.Args[4]
		switch {
		case arg.IsWord(c.Args[3], "MODULE"):
			wanted = func(cmd *command.Command) bool {
				return cmd.Flags&command.FlagModule != 0 && string(value) == "redis-cell"
			}
		case arg.IsWord(c.Args[3], "ACLCAT"):
			name := strings.ToLower(string(value))
			wanted = func(cmd *command.Command) bool { return slices.Contains(cmd.AllCategories().Names(), name) }
		case arg.IsWord(c.Args[3], "PATTERN") && len(value) <= glob.MaxPattern:
			wanted = func(cmd *command.Command) bool { return glob.Match(bytes.ToLower(value), []byte(cmd.Name)) }
		default:
			c.Fail(resp.ErrSyntax)
			return
		}
	default:
		c.Fail(resp.ErrSyntax)
		return
	}
	var names []string
	for _, cmd := range c.Server.Commands.Top() {
		if wanted(cmd) {
			names = append(names, cmd.Name)
		}
	}
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}
