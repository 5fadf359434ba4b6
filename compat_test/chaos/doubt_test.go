package chaos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote"
)

// TestLostRepliesChargeNobodyTwice has 1 to 9 servers ask about the same keys over
// connections that lose replies, are reset and fall silent. What is stored in the end is
// what callers were told that they have, and at most what they could not be told.
func TestLostRepliesChargeNobodyTwice(t *testing.T) {
	e := storetest.Best(t)
	writers := []int{1, 3, 9}
	if testing.Short() {
		writers = []int{3}
	}
	if full {
		writers = []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	}
	for fault, begin := range map[string]func(f *front) (end func()){
		"replies lost": func(f *front) func() { f.add(cut(20)); return f.heal },
		"connections reset": func(f *front) func() {
			return every(50*time.Millisecond, func() {
				f.add(reset(0.5))
				time.Sleep(5 * time.Millisecond)
				f.heal()
				f.add(cut(40))
				time.Sleep(20 * time.Millisecond)
				f.heal()
			})
		},
		"silence": func(f *front) func() {
			return every(100*time.Millisecond, func() {
				f.add(blackHole)
				time.Sleep(100 * time.Millisecond)
				f.heal()
			})
		},
		"slow": func(f *front) func() { f.add(slow(12, 8)); return f.heal },
	} {
		t.Run(fault, func(t *testing.T) {
			for _, n := range writers {
				loseReplies(t, e, n, begin)
			}
		})
	}
}

func loseReplies(t *testing.T, e storetest.Engine, writers int, begin func(f *front) (end func())) {
	t.Helper()
	node := e.Single(t, storetest.Options{})
	l := newLoad(t, 2)
	var stores []*remote.Store
	var fronts []*front
	for i := range writers {
		f := newFront(t, node.Addr)
		s := open(t, remote.Options{URL: node.URLAt(f.addr)})
		stores, fronts = append(stores, s), append(fronts, f)
		l.call(i, s)
	}
	l.awaitBegin()
	var ends []func()
	for _, f := range fronts {
		ends = append(ends, begin(f))
	}
	time.Sleep(lasts(1500*time.Millisecond, 20*time.Second))
	for _, end := range ends {
		end()
	}
	settle(t, l, stores)
	total := l.total()
	unknown := figures(t, stores, "unknown")
	kept := figures(t, stores, "kept")
	now := stores[0].Now()
	var sum int64
	for key, is := range l.charges(node.Client, now) {
		told := l.told[key]
		require.GreaterOrEqual(t, is, told.admitted, "%s: what was admitted is charged", key)
		require.LessOrEqual(t, is, told.admitted+told.failed+unknown*callers*mostUnits, "%s", key)
		sum += is
	}
	t.Logf("%d writers: %d admitted, %d charged, %d failed; doubts %d, own found %d, unknown %d, undone %d, kept %d", writers, total.admitted, sum,
		total.failed, figures(t, stores, "doubts"), figures(t, stores, "own_found"), unknown, figures(t, stores, "undone"), kept)
	require.Positive(t, total.admitted)
	if unknown == 0 && kept == 0 {
		require.Equal(t, total.admitted, sum, "nothing is unknown")
	}
}

// settle ends the load and has every store ask for every key once more, as it does sooner or
// later: so it gives back what callers were not told.
func settle(t *testing.T, l *load, stores []*remote.Store) {
	t.Helper()
	l.end()
	for range 2 {
		for _, s := range stores {
			for _, key := range l.keys {
				storetest.Await(t, "the store answers again", func() error { return submit(s, look(key)).Err })
			}
		}
	}
}

// look asks about a key and takes nothing.
func look(key string) *decide.Ask { return familyOf(key)(key, 0) }
