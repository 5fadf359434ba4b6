package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// tight returns a clause with a hundred units per second of a family.
func tight(t testing.TB, key string) decide.Clause {
	q, err := gcra.NewQuota(2, 100, 1)
	require.NoError(t, err)
	c := decide.Clause{Key: []byte(key)}
	switch key {
	case "cell":
		c.Quota, c.Quantity = &q, 1
	case "bucket":
		c.Bucket = &tokenbucket.Call{
			Mode: tokenbucket.Greedy, Capacity: 3, Init: 3, Count: 100, Period: time.Second, Interval: 10 * time.Millisecond, Quantity: 1,
		}
	case "interval":
		c.Bucket = &tokenbucket.Call{
			Mode: tokenbucket.Interval, Capacity: 3, Init: 3, Count: 3, Period: 30 * time.Millisecond, Interval: 10 * time.Millisecond, Quantity: 1,
		}
	case "counter", "fixed", "log", "buckets":
		m := map[string]slidingwindow.Mode{"counter": slidingwindow.Counter, "fixed": slidingwindow.Fixed, "log": slidingwindow.Log, "buckets": slidingwindow.Buckets}
		c.Window = &slidingwindow.Call{Mode: m[key], Slots: 3, Limit: 3, Window: 30 * time.Millisecond, Quantity: 1}
		if key != "buckets" {
			c.Window.Slots = 0
		}
	}
	return c
}

// TestUndoingAdmitsNoMoreThanTheLimit: six servers repeatedly undo their charges of a key that
// others charge, too, and whose units come back all the time.
func TestUndoingAdmitsNoMoreThanTheLimit(t *testing.T) {
	for _, family := range []string{"cell", "bucket", "interval", "counter", "fixed", "log", "buckets"} {
		c := newCloud(1)
		all := &crowd{admitted: map[string]int64{}}
		for range 6 {
			n := network{there: 500 * time.Microsecond, back: 500 * time.Microsecond, jitter: time.Millisecond}
			all.servers = append(all.servers, serve(c.join(n), bounds()))
		}
		span := time.Duration(seeds(4)) * time.Second
		for i, s := range all.servers {
			for range 2 {
				all.call(s, span, func() *decide.Ask {
					other, err := gcra.NewQuota(1, 60, 1)
					require.NoError(t, err)
					clauses := []decide.Clause{
						tight(t, family),
						{Key: []byte{'x' + byte(i%2)}, Quota: &other, Quantity: 1},
					}
					return &decide.Ask{Family: decide.Several, Clauses: clauses, Details: make([]limit.Decision, 2)}
				})
			}
		}
		c.runFor(span + time.Second)
		most := 3 + 100*int64(span/time.Second)
		if family != "cell" && family != "bucket" {
			most += 3 // a window or batch that has begun
		}
		require.LessOrEqual(t, all.admitted[family], most, family)
		require.Greater(t, all.admitted[family], most*8/10, family)
		require.Greater(t, all.sum(func(n *counters) int64 { return n.refunded.Load() }), int64(4), family)
		require.Greater(t, all.sum(func(n *counters) int64 { return n.undone.Load() }), int64(20), family)
		require.LessOrEqual(t, all.errors, 5, "deadlines")
	}
}
