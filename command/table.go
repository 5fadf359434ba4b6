package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// Table finds commands by name. It does not change after it was built, except for the replies that
// it caches. Any goroutine may use it.
type Table struct {
	groups  []Group
	Entries []*Command  // all entries, with containers and subcommands; the index is Command.ID
	Sorted  []*Command  // all entries but subcommands, sorted by name
	names   []tableName // each command of Sorted with its name in use, which may differ from Command.Name
	Slots   []nameSlot  // a hash table with open addressing, indexed by endsHash; its length is a power of two
	// Remote says that a Remote decides the asks of commands: see [NewStoreTable]. unserved has the
	// commands that cannot run then. It maps the name in use to the original name.
	Remote   bool
	unserved map[string]string
	handlers []Handler // a handler for each type of store that commands need; with the same index as in Worker.stores
	vocabulary

	Info, Docs madeOnce // the cached replies of COMMAND and COMMAND DOCS about Sorted
}

// tableName is a command and the name that is in use for it.
type tableName struct {
	name string
	cmd  *Command
}

// NewTable builds the table of the commands of groups. The entries belong to the table from then on
// and cannot be used for another one. NewTable panics if two entries share a name or an entry is
// incomplete: that is a programming error, found at start-up.
func NewTable(groups []Group) *Table {
	t := &Table{groups: withParts(groups)}
	for i := range t.groups {
		g := &t.groups[i]
		for _, c := range g.Commands {
			c.group = i
			for _, sub := range c.Sub {
				sub.group = i
			}
		}
		for _, c := range g.Commands {
			if !strings.Contains(c.Name, "|") {
				t.Sorted = append(t.Sorted, c)
			}
		}
	}
	t.attach()
	slices.SortFunc(t.Sorted, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range t.Sorted {
		if c.Sub != nil {
			c.Sub = append(c.Sub, helpOf(c))
			slices.SortFunc(c.Sub, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
		}
		t.add(c)
		for _, sub := range c.Sub {
			sub.Parent = c
			t.add(sub)
		}
		t.names = append(t.names, tableName{c.Name, c})
	}
	t.index()
	t.speak()
	return t
}

// withParts returns groups with the parts that they need. Each part is there once, before the first
// group that needs it. withParts panics if the result has more than maxGroups.
func withParts(groups []Group) (all []Group) {
	var parts []*Group
	for _, g := range groups {
		for _, part := range g.Needs {
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
				all = append(all, *part)
			}
		}
		all = append(all, g)
	}
	if len(all) > maxGroups {
		panic(fmt.Sprintf("command: %d groups and parts, of %d at most", len(all), maxGroups))
	}
	return all
}

// attach adds to containers the subcommands that other groups define, such as "client|tracking". A
// subcommand is dropped if its container is not in the table.
func (t *Table) attach() {
	for _, g := range t.groups {
		for _, c := range g.Commands {
			container, _, is := strings.Cut(c.Name, "|")
			if !is {
				continue
			}
			at := slices.IndexFunc(t.Sorted, func(c *Command) bool { return c.Name == container })
			if at >= 0 {
				t.Sorted[at].Sub = append(t.Sorted[at].Sub, c)
			}
		}
	}
}

// add completes the entry c with the fields that the table derives from others, checks it, and
// appends it to t.Entries. It panics if the entry is incomplete or contradicts itself.
func (t *Table) add(c *Command) {
	switch {
	case c.Run != nil && c.RunOn != nil:
		panic(fmt.Sprintf("commands: entry %q has both Run and RunOn", c.Name))
	case c.RunOn != nil:
		c.Run = c.RunOn.runOf(t.storeOf(c.RunOn))
	case c.Run == nil && c.Parse != nil:
		c.Run = asks(c.Parse, c.Answer)
	}
	c.check()
	if c.Flags&FlagAudit != 0 {
		c.Run = audited(c)
	}
	c.Keys.complete(c.Flags&FlagReadonly == 0)
	c.ID = len(t.Entries)
	c.Serves = c.Serves || c.Flags&FlagDenyOOM != 0 && c.Flags&FlagBlocking == 0 && c.Categories&(CatList|CatSortedSet) != 0
	c.Class = classOf(c)
	c.InlineWords = min(maxInlineWords, MaxLoopWork/c.WordsWork(1))
	t.Entries = append(t.Entries, c)
}

// NewRenamedTable is NewTable with renamed commands. Each pair is an old and a new name, and the
// pairs are applied in order. An empty new name removes the command. COMMAND, INFO and error texts
// still use the original name, as in Redis. The error says that an old name does not exist or that
// a new one is in use.
func NewRenamedTable(groups []Group, pairs [][2]string) (*Table, error) {
	return renamed(NewTable(groups), pairs)
}

// NewStoreTable is [NewRenamedTable] for a server with a Remote, which has all keys. The table has
// the commands that ask the Remote ([Command].Parse) and those that access no key ([FlagLocal]).
// Their handlers need no more than an [env.Store]. A call of any other command is refused with an
// error that names the command. A group without such commands is left out, together with its hooks.
func NewStoreTable(groups []Group, pairs [][2]string) (*Table, error) {
	unserved := make(map[string]string)
	served := make([]Group, 0, len(groups))
	for _, g := range groups {
		if g.Commands = servedOf(g.Commands, unserved); len(g.Commands) > 0 {
			served = append(served, g)
		}
	}
	t := NewTable(served)
	t.Remote, t.unserved = true, unserved
	return renamed(t, pairs)
}

// servedOf returns the commands that can be served without a keyspace, and adds the names of the
// others to unserved. It replaces the Run functions of the commands that ask a Remote, and removes
// subcommands that cannot be served.
func servedOf(commands []*Command, unserved map[string]string) (served []*Command) {
	for _, c := range commands {
		hadSubs := c.Sub != nil
		c.Sub = servedOf(c.Sub, unserved)
		switch {
		case c.Parse != nil:
			c.Run, c.RunOn = collects(c), nil
		case c.Flags&FlagLocal == 0 && len(c.Sub) == 0, hadSubs && c.Run == nil && c.RunOn == nil && len(c.Sub) == 0:
			unserved[c.Name] = c.Name
			continue
		}
		served = append(served, c)
	}
	return served
}

// Unknown returns the error for a call of a command that is not in the table. args[0] is the name.
func (t *Table) Unknown(args [][]byte) resp.Error {
	if name, is := t.unserved[strings.ToLower(string(Echo(args[0], MaxEcho)))]; is {
		return notServed(name)
	}
	return unknownCommand(args)
}

// UnknownSub returns the error for a call of container with a subcommand called name that is not in
// the table.
func (t *Table) UnknownSub(container *Command, name []byte) resp.Error {
	if name, is := t.unserved[container.Name+"|"+strings.ToLower(string(Echo(name, MaxEcho)))]; is {
		return notServed(name)
	}
	return unknownSubcommand(container.Name, name)
}

// renamed applies pairs to the new table t: see [NewRenamedTable].
func renamed(t *Table, pairs [][2]string) (*Table, error) {
	for _, p := range pairs {
		from, to := strings.ToLower(p[0]), strings.ToLower(p[1])
		if name, is := t.unserved[from]; is {
			delete(t.unserved, from)
			if to != "" {
				t.unserved[to] = name
			}
			continue
		}
		at := slices.IndexFunc(t.names, func(n tableName) bool { return n.name == from })
		if at < 0 {
			return nil, fmt.Errorf("no such command %q", p[0])
		}
		cmd := t.names[at].cmd
		t.names = slices.Delete(t.names, at, at+1)
		if to == "" {
			t.Sorted = slices.DeleteFunc(t.Sorted, func(c *Command) bool { return c == cmd })
			continue
		}
		if slices.ContainsFunc(t.names, func(n tableName) bool { return n.name == to }) {
			return nil, fmt.Errorf("there is a command %q already", p[1])
		}
		t.names = append(t.names, tableName{to, cmd})
	}
	if len(pairs) > 0 {
		t.index()
	}
	return t, nil
}

// index builds t.Slots from t.names. It panics if a name is there twice.
func (t *Table) index() {
	size := 64
	for size < 4*len(t.names) {
		size *= 2
	}
	t.Slots = make([]nameSlot, size)
	for _, n := range t.names {
		if t.Lookup([]byte(n.name)) != nil {
			panic(fmt.Sprintf("commands: %q is listed twice", n.name))
		}
		first, last := ends([]byte(n.name))
		i := int(endsHash(first, last)) & (size - 1)
		for t.Slots[i].Cmd != nil {
			i = (i + 1) & (size - 1)
		}
		t.Slots[i] = nameSlot{first: folded(first), last: folded(last), name: n.name, Cmd: n.cmd}
	}
}

// Lookup returns the command whose name in use is name, in any case; nil if there is none.
func (t *Table) Lookup(name []byte) *Command {
	first, last := ends(name)
	mask := len(t.Slots) - 1
	for i := int(endsHash(first, last)) & mask; ; i = (i + 1) & mask {
		s := &t.Slots[i]
		if s.Cmd == nil {
			return nil
		}
		if first|s.first.fold == s.first.word && last|s.last.fold == s.last.word &&
			len(name) == len(s.name) && (len(name) <= 16 || EqualFold(name, s.name)) {
			return s.Cmd
		}
	}
}

// All returns all entries, including the entries of removed commands. The subcommands of a
// container follow it. The caller must not change the result.
func (t *Table) All() []*Command { return t.Entries }

// Top returns all entries except subcommands, sorted by name. Removed commands are left out. The
// caller must not change the result.
func (t *Table) Top() []*Command { return t.Sorted }
