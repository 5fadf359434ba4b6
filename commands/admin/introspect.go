package admin

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

func introspectCommands() []*command.Command {
	const calm = command.FlagLoading | command.FlagStale
	return []*command.Command{{
		Name: "command", Arity: -1, Flags: calm, Categories: command.CatConnection, Group: "server",
		Summary: "Returns detailed information about all commands.", Since: "1.0.0", Complexity: "O(N)",
		Reply: "an array with ten fields for each command", Run: commandAll,
		Sub: command.Entries(command.Defaults{
			Categories: command.CatConnection, Group: "server", Since: "1.0.0", Complexity: "O(N)",
		}, []*command.Command{
			{
				Name: "command|count", Arity: 2, Flags: calm,
				Summary: "Returns how many commands there are.", Reply: "an integer", Run: commandCount,
			},
			{
				Name: "command|docs", Arity: -2, Flags: calm,
				Summary: "Returns the documentation of commands.", Syntax: "[command-name ...]", Reply: "a map by command name",
				Run:      commandDocs,
				WordWork: 50, // the reply has much text for each command that is an argument
			},
			{
				Name: "command|getkeys", Arity: -3, Flags: calm,
				Summary: "Returns the keys of a full command.", Syntax: "command [arg ...]", Reply: "an array of keys",
				Run: func(c *command.Call) { commandGetKeys(c, false) },
			},
			{
				Name: "command|getkeysandflags", Arity: -3, Flags: calm,
				Summary: "Returns the keys of a full command and how they are used.", Syntax: "command [arg ...]",
				Reply: "an array of pairs",
				Run:   func(c *command.Call) { commandGetKeys(c, true) },
			},
			{
				Name: "command|info", Arity: -2, Flags: calm,
				Summary: "Returns information about the named commands.", Syntax: "[command-name ...]",
				Reply: "ten fields or null for each",
				Run:   commandInfo, WordWork: 100,
			},
			{
				Name: "command|list", Arity: -2, Flags: calm,
				Summary: "Returns the names of commands.", Syntax: "[FILTERBY <MODULE name | ACLCAT category | PATTERN pattern>]",
				Reply: "an array of names", Run: commandList,
			},
		}),
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

func commandGetKeys(c *command.Call, withFlags bool) {
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
	keys := cmd.Keys.Names(args)
	if len(keys) == 0 && !cmd.RunsScript() { // scripts may have no keys
		c.Fail("ERR Invalid arguments specified for command")
		return
	}
	c.W.Array(len(keys))
	for n, key := range keys {
		if withFlags {
			c.W.Array(2)
		}
		c.W.Bulk(key)
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
