package commands

import (
	"fmt"
	"slices"
	"strings"
)

// Table finds commands by name. It never changes after NewTable.
type Table struct {
	all   []*Command // by id: containers, commands and subcommands
	top   []*Command // without subcommands, sorted by name
	slots []nameSlot // open addressing over endsHash, a power of two long
}

// families lists the whole surface of the server, one slice for each file.
func families() [][]*Command {
	return [][]*Command{
		throttleCommands(),
		slidingWindowCommands(),
		tokenBucketCommands(),
		concurrencyCommands(),
		multiCommands(),
		ratelimitCommands(),
		transactionCommands(),
		scriptingCommands(),
		functionCommands(),
		listCommands(),
		setCommands(),
		keyCommands(),
		stringCommands(),
		counterCommands(),
		hashCommands(),
		sortedSetCommands(),
		expireCommands(),
		scanCommands(),
		pubsubCommands(),
		connectionCommands(),
		clientCommands(),
		introspectCommands(),
		infoCommands(),
		saveCommands(),
		configCommands(),
		adminCommands(),
		clusterCommands(),
	}
}

// NewTable builds the table of every command. It panics when two entries share a
// name or an entry is incomplete: that is a mistake of ours, found at start-up.
func NewTable() *Table {
	t := &Table{}
	for _, f := range families() {
		t.top = append(t.top, f...)
	}
	slices.SortFunc(t.top, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range t.top {
		if c.Sub != nil {
			c.Sub = append(c.Sub, helpOf(c))
			slices.SortFunc(c.Sub, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
		}
		t.add(c)
		for _, sub := range c.Sub {
			sub.parent = c
			t.add(sub)
		}
	}
	t.index()
	return t
}

func (t *Table) add(c *Command) {
	c.check()
	c.id = len(t.all)
	t.all = append(t.all, c)
}

func (t *Table) index() {
	size := 64
	for size < 4*len(t.top) {
		size *= 2
	}
	t.slots = make([]nameSlot, size)
	for _, c := range t.top {
		if t.Lookup([]byte(c.Name)) != nil {
			panic(fmt.Sprintf("commands: %q is listed twice", c.Name))
		}
		first, last := ends([]byte(c.Name))
		i := int(endsHash(first, last)) & (size - 1)
		for t.slots[i].cmd != nil {
			i = (i + 1) & (size - 1)
		}
		t.slots[i] = nameSlot{first: folded(first), last: folded(last), cmd: c}
	}
}

// Lookup returns the command of that name in any case, or nil.
func (t *Table) Lookup(name []byte) *Command {
	first, last := ends(name)
	mask := len(t.slots) - 1
	for i := int(endsHash(first, last)) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.cmd == nil {
			return nil
		}
		if first|s.first.fold == s.first.word && last|s.last.fold == s.last.word &&
			len(name) == len(s.cmd.Name) && (len(name) <= 16 || equalFold(name, s.cmd.Name)) {
			return s.cmd
		}
	}
}

// Subcommand returns the subcommand of c of that name in any case, or nil.
func (c *Command) Subcommand(name []byte) *Command {
	for _, sub := range c.Sub {
		if equalFold(name, sub.Name[len(c.Name)+1:]) {
			return sub
		}
	}
	return nil
}

// All returns every entry, subcommands after their containers.
func (t *Table) All() []*Command { return t.all }

// Top returns the entries without subcommands, sorted by name.
func (t *Table) Top() []*Command { return t.top }

// equalFold reports whether name is the lower-case word, in any ASCII case.
func equalFold(name []byte, word string) bool {
	if len(name) != len(word) {
		return false
	}
	for i, w := range []byte(word) {
		if c := name[i]; c != w && (c != w-('a'-'A') || w < 'a') {
			return false
		}
	}
	return true
}
