package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
)

// keyed is a store with keys that counts calls of Exists.
type keyed struct {
	env.Local
	calls int
}

func (s *keyed) Exists(int, []byte) bool {
	s.calls++
	return true
}

// keyless is a store without keys.
type keyless struct{ env.Store }

// exister is another type of store that keyed is.
type exister interface{ Exists(db int, key []byte) bool }

func entryOn(name string, run Handler) *Command {
	return &Command{
		Name: name, Arity: 1, Keys: OneKey, Summary: "s", Since: "1.0.0", Group: "g", Complexity: "O(1)", Reply: "r", RunOn: run,
	}
}

// equipped returns a call of a worker with the store st and a table of these commands.
func equipped(st env.Store, commands ...*Command) *Call {
	w := &Worker{Store: st, Server: &Server{Commands: NewTable([]Group{{Commands: commands}})}}
	w.Equip()
	return &Call{Worker: w}
}

// TestHandlersGetTheStoreAsTheirType: each handler gets the worker's store as the type that it
// declares, without an allocation. Commands that declare the same type share its place.
func TestHandlersGetTheStoreAsTheirType(t *testing.T) {
	st := &keyed{}
	one := entryOn("one", On(func(c CallOn[env.Keys]) { c.Store.Exists(0, nil) }))
	two := entryOn("two", On(func(c CallOn[env.Keys]) { c.Store.Exists(0, nil) }))
	other := entryOn("other", On(func(c CallOn[exister]) { c.Store.Exists(0, nil) }))
	c := equipped(st, one, two, other)
	require.Len(t, c.stores, 2)
	for _, cmd := range []*Command{one, two, other} {
		cmd.Run(c)
	}
	require.Equal(t, 3, st.calls)
	require.Zero(t, testing.AllocsPerRun(100, func() { one.Run(c) }))
}

// TestTableRefusesTwoHandlers: an entry has either Run or RunOn.
func TestTableRefusesTwoHandlers(t *testing.T) {
	two := entryOn("one", On(func(c CallOn[env.Keys]) { c.Store.Exists(0, nil) }))
	two.Run = func(*Call) {}
	require.PanicsWithValue(t, `commands: entry "one" has both Run and RunOn`, func() { NewTable([]Group{{Commands: []*Command{two}}}) })
}

// TestTableNeedsAStoreWithKeys: a worker whose store lacks what a command needs is not made, and
// the table of a server with --store has no such command.
func TestTableNeedsAStoreWithKeys(t *testing.T) {
	run := On(func(c CallOn[env.Keys]) { c.Store.Exists(0, nil) })
	require.Panics(t, func() { equipped(keyless{}, entryOn("one", run)) })
	table, err := NewStoreTable([]Group{{Commands: []*Command{entryOn("one", run)}}}, nil)
	require.NoError(t, err)
	require.Nil(t, table.Lookup([]byte("one")))
	require.Empty(t, table.handlers)
}

// BenchmarkRunOn compares a handler that gets the store as its type with one that has the type in
// its worker.
func BenchmarkRunOn(b *testing.B) {
	st := &keyed{}
	on := entryOn("one", On(func(c CallOn[exister]) { c.Store.Exists(0, nil) }))
	c := equipped(st, on)
	plain := func(c *Call) { c.local.Exists(0, nil) }
	for name, run := range map[string]func(*Call){"On": on.Run, "Plain": plain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(c)
			}
		})
	}
}
