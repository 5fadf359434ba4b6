package commands

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func introspectCommands() []*Command {
	sub := func(name string, arity int, syntax, summary, reply string, run func(*Ctx)) *Command {
		return &Command{
			Name: "command|" + name, Arity: arity, Flags: FlagLoading | FlagStale, Categories: CatConnection, Group: "server",
			Summary: summary, Syntax: syntax, Since: "1.0.0", Complexity: "O(N)", Reply: reply, Run: run,
		}
	}
	// Of each command that is named much is said.
	docs := sub("docs", -2, "[command-name ...]", "Returns the documentation of commands.", "a map by command name", commandDocs)
	info := sub("info", -2, "[command-name ...]", "Returns information about the named commands.", "ten fields or null for each", commandInfo)
	docs.WordWork, info.WordWork = 50, 100
	return []*Command{{
		Name: "command", Arity: -1, Flags: FlagLoading | FlagStale, Categories: CatConnection, Group: "server",
		Summary: "Returns detailed information about all commands.",
		Since:   "1.0.0", Complexity: "O(N)", Reply: "an array with ten fields for each command", Run: commandAll,
		Sub: []*Command{
			sub("count", 2, "", "Returns how many commands there are.", "an integer", commandCount),
			docs,
			sub("getkeys", -3, "command [arg ...]", "Returns the keys of a full command.", "an array of keys", commandGetKeys),
			sub("getkeysandflags", -3, "command [arg ...]", "Returns the keys of a full command and how they are used.", "an array of pairs", commandGetKeys),
			info,
			sub("list", -2, "[FILTERBY <MODULE name | ACLCAT category | PATTERN pattern>]", "Returns the names of commands.", "an array of names", commandList),
		},
	}}
}

func commandAll(c *Ctx) {
	t := c.server.table
	c.W.Raw(t.info.keep(c.W.Proto, t.writeInfo))
}

// writeInfo writes what COMMAND says of all commands.
func (t *Table) writeInfo(w *resp.Writer) {
	w.Array(len(t.top))
	for _, cmd := range t.top {
		cmd.writeInfo(w)
	}
}

// madeOnce is a reply that is the same for everybody, by protocol. It is made when it is
// first asked for: what is to be said of all commands takes milliseconds, and clients of
// some libraries ask for it whenever they connect.
type madeOnce [2]struct {
	once sync.Once
	text []byte
}

// keep returns the reply in a protocol, which write writes the first time.
func (m *madeOnce) keep(proto int, write func(w *resp.Writer)) []byte {
	is := &m[0]
	if proto == 3 {
		is = &m[1]
	}
	is.once.Do(func() {
		w := resp.Writer{Proto: proto}
		write(&w)
		is.text = slices.Clip(w.Buf)
	})
	return is.text
}

func commandCount(c *Ctx) { c.W.Int(int64(len(c.server.table.Top()))) }

func commandInfo(c *Ctx) {
	if len(c.Args) == 2 {
		commandAll(c)
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if cmd := c.server.table.find(name); cmd != nil {
			cmd.writeInfo(c.W)
		} else {
			c.W.Null()
		}
	}
}

// find returns the command or, for a name with a bar, the subcommand.
func (t *Table) find(name []byte) *Command {
	container, sub, isSub := bytes.Cut(name, []byte("|"))
	cmd := t.Lookup(container)
	if cmd == nil || !isSub {
		return cmd
	}
	return cmd.Subcommand(sub)
}

// writeInfo writes the ten fields that Redis 7 gives of a command. Clients that
// read them by position reject any other number.
func (c *Command) writeInfo(w *resp.Writer) {
	w.Array(10)
	w.BulkString(c.Name)
	w.Int(int64(c.Arity))
	flags := c.Flags.Names()
	w.Set(len(flags))
	for _, f := range flags {
		w.Status(f)
	}
	w.Int(int64(c.Keys.First))
	w.Int(int64(c.Keys.Last))
	w.Int(int64(c.Keys.Step))
	categories := c.AllCategories().Names()
	w.Set(len(categories))
	for _, name := range categories {
		w.Status("@" + name)
	}
	w.Set(0) // tips
	c.writeKeySpecs(w)
	if len(c.Sub) == 0 {
		w.Set(0) // so Redis has it: a set when empty, an array otherwise
		return
	}
	w.Array(len(c.Sub))
	for _, sub := range c.Sub {
		sub.writeInfo(w)
	}
}

// writeKeySpecs writes where the keys are in the form that Redis 7 introduced.
func (c *Command) writeKeySpecs(w *resp.Writer) {
	if c.Keys.First == 0 {
		w.Set(0)
		return
	}
	w.Set(1)
	w.Map(3)
	w.BulkString("flags")
	flags := c.keyFlags()
	w.Set(len(flags))
	for _, f := range flags {
		w.Status(f)
	}
	w.BulkString("begin_search")
	w.Map(2)
	w.BulkString("type")
	w.BulkString("index")
	w.BulkString("spec")
	w.Map(1)
	w.BulkString("index")
	w.Int(int64(c.Keys.First))
	w.BulkString("find_keys")
	w.Map(2)
	w.BulkString("type")
	w.BulkString("range")
	w.BulkString("spec")
	w.Map(3)
	w.BulkString("lastkey")
	last := c.Keys.Last
	if last > 0 {
		last -= c.Keys.First // relative to the first key, negative from the end
	}
	w.Int(int64(last))
	w.BulkString("keystep")
	w.Int(int64(c.Keys.Step))
	w.BulkString("limit")
	w.Int(0)
}

// keyFlags says how the keys are used. redis-cell declares access and update.
func (c *Command) keyFlags() []string {
	if c.Flags&FlagWrite != 0 {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

func commandDocs(c *Ctx) {
	t := c.server.table
	if len(c.Args) == 2 {
		c.W.Raw(t.docs.keep(c.W.Proto, func(w *resp.Writer) { writeDocs(w, t.top) }))
		return
	}
	var cmds []*Command
	for _, name := range c.Args[2:] {
		if cmd := t.find(name); cmd != nil {
			cmds = append(cmds, cmd)
		}
	}
	writeDocs(c.W, cmds)
}

func writeDocs(w *resp.Writer, cmds []*Command) {
	w.Map(len(cmds))
	for _, cmd := range cmds {
		cmd.writeDocs(w)
	}
}

// writeDocs writes a name and its documentation. redis-cli insists on bulk strings
// here and on arrays for arguments.
func (c *Command) writeDocs(w *resp.Writer) {
	fields := 5
	if c.Flags&FlagModule != 0 {
		fields++
	}
	args := parseSyntax(c.Syntax)
	if len(args) > 0 {
		fields++
	}
	if len(c.Sub) > 0 {
		fields++
	}
	w.BulkString(c.Name)
	w.Map(fields - 1)
	pair := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	pair("summary", c.Summary)
	pair("since", c.Since)
	pair("group", c.Group)
	pair("complexity", c.complexity())
	if c.Flags&FlagModule != 0 {
		pair("module", "redis-cell")
	}
	if len(args) > 0 {
		w.BulkString("arguments")
		writeArguments(w, args)
	}
	if len(c.Sub) > 0 {
		w.BulkString("subcommands")
		w.Map(len(c.Sub))
		for _, sub := range c.Sub {
			sub.writeDocs(w)
		}
	}
}

func (c *Command) complexity() string {
	if c.Complexity == "" {
		return "Depends on subcommand."
	}
	return c.Complexity
}

func commandGetKeys(c *Ctx) {
	args := c.Args[2:]
	cmd := c.server.table.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		if sub := cmd.Subcommand(args[1]); sub != nil {
			cmd = sub
		}
	}
	switch {
	case cmd == nil:
		c.Fail("ERR Invalid command specified")
		return
	case !cmd.arityOK(len(args)):
		c.Fail("ERR Invalid number of arguments specified for command")
		return
	case cmd.Keys.First == 0 && cmd.Keys.Find == nil:
		c.Fail("ERR The command has no key arguments")
		return
	}
	at := cmd.Keys.positions(args)
	if len(at) == 0 && !cmd.runsScript() { // those may do without
		c.Fail("ERR Invalid arguments specified for command")
		return
	}
	withFlags := c.Cmd.Name == "command|getkeysandflags"
	c.W.Array(len(at))
	for _, i := range at {
		if withFlags {
			c.W.Array(2)
		}
		c.W.Bulk(args[i])
		if withFlags {
			flags := cmd.keyFlags()
			c.W.Set(len(flags))
			for _, f := range flags {
				c.W.Status(f)
			}
		}
	}
}

func commandList(c *Ctx) {
	wanted := func(*Command) bool { return true }
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 5 && parse.IsWord(c.Args[2], "FILTERBY"):
		value := c.Args[4]
		switch {
		case parse.IsWord(c.Args[3], "MODULE"):
			wanted = func(cmd *Command) bool { return cmd.Flags&FlagModule != 0 && string(value) == "redis-cell" }
		case parse.IsWord(c.Args[3], "ACLCAT"):
			name := strings.ToLower(string(value))
			wanted = func(cmd *Command) bool { return cmd.AllCategories().has(name) }
		case parse.IsWord(c.Args[3], "PATTERN") && len(value) <= parse.MaxPattern:
			wanted = func(cmd *Command) bool { return parse.Glob(bytes.ToLower(value), []byte(cmd.Name)) }
		default:
			c.Fail(resp.ErrSyntax)
			return
		}
	default:
		c.Fail(resp.ErrSyntax)
		return
	}
	var names []string
	for _, cmd := range c.server.table.Top() {
		if wanted(cmd) {
			names = append(names, cmd.Name)
		}
	}
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

// has reports whether the set holds the category of that name.
func (c Category) has(name string) bool {
	for _, n := range categoryNames {
		if n.name == name {
			return c&n.category != 0
		}
	}
	return false
}
