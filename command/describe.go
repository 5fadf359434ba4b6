package command

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/syntax"
)

// WriteInfo writes the reply of COMMAND to w: the descriptions of all commands, sorted by name.
func (t *Table) WriteInfo(w *resp.Writer) {
	w.Array(len(t.Sorted))
	for _, cmd := range t.Sorted {
		cmd.WriteInfo(w)
	}
}

// Keep returns the cached reply for the protocol proto, 2 or 3. The first call for a protocol calls
// write to create the reply. Any goroutine may call Keep. The caller must not change the result.
func (m *madeOnce) Keep(proto int, write func(w *resp.Writer)) []byte {
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

// Find returns the command called name. If name has a bar, it names a subcommand, such as
// "client|list". The result is nil if there is no such command.
func (t *Table) Find(name []byte) *Command {
	container, sub, isSub := bytes.Cut(name, []byte("|"))
	cmd := t.Lookup(container)
	if cmd == nil || !isSub {
		return cmd
	}
	return cmd.Subcommand(sub)
}

// WriteInfo writes the ten fields that Redis 7 returns for a command to w. Clients that read the
// fields by position reject any other number of fields.
func (c *Command) WriteInfo(w *resp.Writer) {
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
	w.Set(0) // the tips, of which there are none
	c.writeKeySpecs(w)
	if len(c.Sub) == 0 {
		w.Set(0) // as in Redis, a set if there are no subcommands, and otherwise an array
		return
	}
	w.Array(len(c.Sub))
	for _, sub := range c.Sub {
		sub.WriteInfo(w)
	}
}

// writeKeySpecs writes the key specifications of Redis 7 to w: none if no fixed argument is a key,
// one range, or two ranges if the first key is used in another way than the rest.
func (c *Command) writeKeySpecs(w *resp.Writer) {
	k := &c.Keys
	switch {
	case k.First == 0:
		w.Set(0)
	case k.Use == k.Rest:
		w.Set(1)
		k.writeRange(w, k.First, k.Last, k.Use)
	default:
		w.Set(2)
		k.writeRange(w, k.First, k.First, k.Use)
		k.writeRange(w, k.First+k.Step, k.Last, k.Rest)
	}
}

func (k *KeySpec) writeRange(w *resp.Writer, first, last int, use KeyUse) {
	w.Map(3)
	w.BulkString("flags")
	flags := use.Names()
	if k.UseOf != nil {
		flags = append(flags, "variable_flags")
	}
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
	w.Int(int64(first))
	w.BulkString("find_keys")
	w.Map(2)
	w.BulkString("type")
	w.BulkString("range")
	w.BulkString("spec")
	w.Map(3)
	w.BulkString("lastkey")
	if last > 0 {
		last -= first // COMMAND shows the last key relative to the first; a negative index counts from the end
	}
	w.Int(int64(last))
	w.BulkString("keystep")
	w.Int(int64(k.Step))
	w.BulkString("limit")
	w.Int(0)
}

// WriteAllDocs writes the reply of COMMAND DOCS about cmds.
func WriteAllDocs(w *resp.Writer, cmds []*Command) {
	w.Map(len(cmds))
	for _, cmd := range cmds {
		cmd.WriteDocs(w)
	}
}

// WriteDocs writes the name of the command and the map of its documentation to w. redis-cli
// requires bulk strings in the map, and arrays for the arguments.
func (c *Command) WriteDocs(w *resp.Writer) {
	fields := 5
	if c.Flags&FlagModule != 0 {
		fields++
	}
	args := syntax.Parse(c.Syntax)
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
		syntax.Write(w, args)
	}
	if len(c.Sub) > 0 {
		w.BulkString("subcommands")
		w.Map(len(c.Sub))
		for _, sub := range c.Sub {
			sub.WriteDocs(w)
		}
	}
}

func (c *Command) complexity() string {
	if c.Complexity == "" {
		return "Depends on subcommand."
	}
	return c.Complexity
}
