package adapter_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/adapter"
)

// decider is a Remote that answers every ask on another goroutine.
type decider struct {
	now   limit.Instant
	asked chan []*decide.Ask
}

func (d *decider) Now() limit.Instant { return d.now }

func (d *decider) Submit(asks []*decide.Ask, _ bool, done func()) {
	d.asked <- asks
	go func() {
		asks[0].Decision.Remaining = 7
		done()
	}()
}

// TestStoreDecidesInTheBackground: Decide returns the answer of another goroutine.
func TestStoreDecidesInTheBackground(t *testing.T) {
	d := &decider{asked: make(chan []*decide.Ask, 1)}
	st := adapter.New(d, nil).NewStore().(interface{ Decide(*decide.Ask) })
	a := &decide.Ask{Key: []byte("k")}
	st.Decide(a)
	require.Equal(t, int64(7), a.Decision.Remaining)
	require.Same(t, a, (<-d.asked)[0])
}

// TestStoreClockIsThatOfTheRemote: until the Remote knows the time of its nodes it uses this
// machine's clock, which may be ahead of theirs.
func TestStoreClockIsThatOfTheRemote(t *testing.T) {
	d := &decider{now: 5}
	st := adapter.New(d, nil).NewStore()
	require.Equal(t, limit.Instant(5), st.Refresh())
	d.now = 3
	require.Equal(t, limit.Instant(5), st.Now())
	require.Equal(t, limit.Instant(3), st.Refresh())
	require.Equal(t, limit.Instant(3), st.Now())
}

// TestWaitersOfAllWorkersShareAQueue: a waiter is woken when it becomes the first of its key, in
// the order of arrival, whichever worker enqueued it.
func TestWaitersOfAllWorkersShareAQueue(t *testing.T) {
	stores := adapter.New(&decider{}, func(time.Duration, func()) func() bool { return nil })
	one, other := stores.NewStore(), stores.NewStore()
	var woken []string
	enqueue := func(st env.Store, key, name string) (place any, first bool) {
		places, first := st.Enqueue(refs(key), 0, func() { woken = append(woken, name) })
		return places[0], first
	}
	a, first := enqueue(one, "k", "a")
	require.True(t, first)
	b, first := enqueue(other, "k", "b")
	require.False(t, first)
	c, first := enqueue(one, "k", "c")
	require.False(t, first)
	_, first = enqueue(one, "j", "d")
	require.True(t, first)
	require.Equal(t, 4, stores.Waiting())
	one.Dequeue(b)
	require.Empty(t, woken, "it was not the first")
	require.True(t, other.First(a))
	require.False(t, other.First(c))
	require.False(t, other.First(b))
	other.Dequeue(a)
	other.Dequeue(a)
	require.Equal(t, []string{"c"}, woken)
	require.True(t, one.First(c))
	one.Dequeue(c)
	require.Equal(t, 1, stores.Waiting())
}

// refs returns references to keys.
func refs(keys ...string) (all []env.KeyRef) {
	for _, k := range keys {
		all = append(all, env.KeyRef{Key: []byte(k)})
	}
	return all
}

// TestWaitersOfSeveralKeysAreInOneOrder: of the waiters for the same keys, whatever the order of these is, one is the first
// in all queues. If each of two were the first in one queue, both would wait for ever.
func TestWaitersOfSeveralKeysAreInOneOrder(t *testing.T) {
	stores := adapter.New(&decider{}, nil)
	keys := [][]env.KeyRef{refs("a", "b", "c"), refs("c", "b", "a"), refs("b", "a"), refs("c", "a", "b")}
	for range 2000 {
		var all [4][]any
		var running sync.WaitGroup
		for i := range keys {
			running.Go(func() { all[i], _ = stores.NewStore().Enqueue(keys[i], int64(i/2), func() {}) })
		}
		running.Wait()
		st := stores.NewStore()
		for left := len(all); left > 0; left-- {
			next := slices.IndexFunc(all[:], func(places []any) bool {
				return places != nil && !slices.ContainsFunc(places, func(place any) bool { return !st.First(place) })
			})
			require.GreaterOrEqual(t, next, 0, "none is the first in all of its queues")
			for _, place := range all[next] {
				st.Dequeue(place)
			}
			all[next] = nil
		}
		require.Zero(t, stores.Waiting())
	}
}

// TestStoreHasNoKeys: the store has none of the interfaces about keys, so that no command can
// reach any.
func TestStoreHasNoKeys(t *testing.T) {
	st := adapter.New(&decider{}, nil).NewStore()
	for i, has := range []func() bool{
		is[env.Keys](st), is[env.Databases](st), is[env.Inspector](st), is[env.Memory](st),
		is[env.Strings](st), is[env.Hashes](st), is[env.Lists](st), is[env.Sets](st), is[env.SortedSets](st),
		is[env.World](st), is[env.Locker](st), is[env.Watcher](st), is[env.BlockedPops](st), is[env.Observable](st),
	} {
		require.False(t, has(), i)
	}
	require.Zero(t, st.Stats())
}

func is[S any](st env.Store) func() bool {
	return func() bool {
		_, is := st.(S)
		return is
	}
}

// reaching is a program of a settlement that is about further states.
type reaching struct {
	decide.Spanning
	further [][]byte
}

func (reaching) Frees() bool { return true }

func (reaching) Reach([][]byte) {}

func (p reaching) States() [][]byte { return p.further }

// TestASettlementWakesWaitersOfAllItsStates: not only those of the state that it names.
func TestASettlementWakesWaitersOfAllItsStates(t *testing.T) {
	stores := adapter.New(&decider{asked: make(chan []*decide.Ask, 1)}, nil)
	st, woken := stores.NewStore(), make(chan string, 4)
	for _, key := range []string{"a", "b", "c", "d"} {
		st.Enqueue(refs(key), 0, func() { woken <- key })
	}
	a := &decide.Ask{Family: decide.Joint, Key: []byte("a"), Program: reaching{further: [][]byte{[]byte("b"), []byte("d")}}}
	stores.Remote().Submit([]*decide.Ask{a}, false, func() { a.Forget() }) // another command may use it
	for _, key := range []string{"a", "b", "d"} {
		require.Equal(t, key, <-woken)
	}
}
