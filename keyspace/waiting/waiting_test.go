package waiting_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/waiting"
)

// TestRoomIsFIFO: the first waiter of a key is woken, and the next when it becomes the first.
func TestRoomIsFIFO(t *testing.T) {
	var r waiting.Room
	woken := ""
	waiter := func(name string) *waiting.Waiter {
		return &waiting.Waiter{Wake: func() { woken += name }}
	}
	a, b, c, other := waiter("a"), waiter("b"), waiter("c"), waiter("o")
	require.False(t, r.Any())
	require.True(t, r.Add(0, []byte("k"), a))
	require.False(t, r.Add(0, []byte("k"), b))
	require.False(t, r.Add(0, []byte("k"), c))
	require.True(t, r.Add(1, []byte("k"), other), "another database")
	require.Equal(t, 4, r.Len())

	r.Wake(0, []byte("k"))
	r.Wake(0, []byte("none"))
	require.Equal(t, "a", woken)
	r.Remove(b)
	require.Equal(t, "a", woken, "the first is still the same")
	r.Remove(a)
	require.Equal(t, "ac", woken)
	require.True(t, r.First(c))
	require.False(t, r.First(a))
	r.Remove(a)
	r.WakeAll(1)
	require.Equal(t, "aco", woken)
	r.Remove(c)
	r.Remove(other)
	require.False(t, r.Any())
}

// TestRoomIsByRank: a waiter with a lower rank is before all with a higher one, and behind those of its own.
func TestRoomIsByRank(t *testing.T) {
	var r waiting.Room
	woken := ""
	add := func(name string, rank int64) (w *waiting.Waiter, first bool) {
		w = &waiting.Waiter{Rank: rank, Wake: func() { woken += name }}
		return w, r.Add(0, []byte("k"), w)
	}
	var all []*waiting.Waiter
	for _, w := range []struct {
		name  string
		rank  int64
		first bool
	}{{"e", 5, true}, {"f", 5, false}, {"a", 0, true}, {"g", 9, false}, {"b", 0, false}, {"c", 1, false}, {"d", 1, false}} {
		is, first := add(w.name, w.rank)
		require.Equal(t, w.first, first, w.name)
		all = append(all, is)
	}
	require.True(t, r.First(all[2]))
	r.Wake(0, []byte("k"))
	for r.Any() {
		i := slices.IndexFunc(all, r.First)
		r.Remove(all[i])
	}
	require.Equal(t, "abcdefg", woken)
}

// TestElements: a change calls Ready of the first waiter once, a server collects the queue instead, and
// a waiter leaves all its queues.
func TestElements(t *testing.T) {
	var e waiting.Elements
	var s waiting.Server
	ready := ""
	waiter := func(name string) *waiting.PopWaiter {
		return &waiting.PopWaiter{Kind: entry.List, Ready: func(_ int, key string) { ready += name + key }}
	}
	a, b := waiter("a"), waiter("b")
	for _, key := range []string{"x", "y", "y"} {
		e.Add(0, []byte(key), 1, a)
	}
	e.Add(0, []byte("x"), 1, b)
	require.Equal(t, 2, a.Queues())
	require.Equal(t, 3, e.Len())

	x := e.Queue(0, []byte("x"))
	x.Changed(entry.Hash, nil)
	require.Empty(t, ready, "no waiter takes elements of a hash")
	x.Changed(entry.SortedSet, nil)
	x.Changed(entry.List, nil)
	require.Equal(t, "ax", ready, "once until Again")
	x.Again()
	x.Lacks(b)
	require.Equal(t, "axbx", ready)
	var all []*waiting.PopWaiter
	for range 2 {
		for w := range x.First(1) {
			all = append(all, w)
		}
	}
	require.Equal(t, []*waiting.PopWaiter{b, a, b, a}, all)

	s.Begin()
	require.True(t, s.Serving())
	x.Changed(entry.List, &s)
	x.Changed(entry.List, &s)
	require.Same(t, x, s.Take())
	require.Nil(t, s.Take())
	x.Again()
	x.Changed(entry.List, &s)
	s.End()
	require.Equal(t, "axbxax", ready, "a queue that was left unserved")

	for i := range a.Queues() {
		e.Leave(a, i)
	}
	a.Forget()
	require.Nil(t, e.Queue(0, []byte("y")))
	e.Leave(b, 0)
	require.False(t, e.Any())
}

// TestStrange: queues of keys of another kind than the waiter's are strange to it.
func TestStrange(t *testing.T) {
	var e waiting.Elements
	w := &waiting.PopWaiter{Kind: entry.List, Ready: func(int, string) {}}
	for i, kind := range []entry.Kind{entry.List, entry.SortedSet, entry.None, entry.Hash} {
		e.Add(i, []byte("k"), 0, w)
		e.Queue(i, []byte("k")).Changed(kind, nil)
	}
	var strange []int
	for q := range w.Strange {
		strange = append(strange, q.Key.DB)
	}
	require.Equal(t, []int{1, 3}, strange)
}
