package keyspace_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

func TestSweep(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		ks, v, c := open(t, o)
		const n = 20_000
		for i := range n {
			at := t0.Add(time.Duration(1+i%4) * time.Second)
			require.NoError(t, v.Put(i%3, key(i), entry.String, make([]byte, i%50), at))
		}
		require.Zero(t, ks.Sweep(n).Removed)
		for round := range 4 {
			c.Advance(time.Second)
			removed, looked := 0, 0
			for removed < n/4 {
				s := ks.Sweep(500)
				require.LessOrEqual(t, s.Looked, 500)
				require.Positive(t, s.Looked)
				removed += s.Removed
				looked += s.Looked
				require.LessOrEqual(t, looked, 4*n, "every part has its turn")
			}
			require.Equal(t, n/4*(3-round), v.Len(0)+v.Len(1)+v.Len(2))
		}
		require.Equal(t, int64(n), ks.Stats().Expired)
		require.Zero(t, ks.Sweep(1000).Looked)
	})
}

func TestSweepReachesEveryDatabase(t *testing.T) {
	for _, n := range []int{1000, 1024, 64, 63, 65} { // both a whole number of slices and not
		t.Run(fmt.Sprint(n), func(t *testing.T) { sweepReachesAll(t, n) })
	}
}

func sweepReachesAll(t *testing.T, n int) {
	ks, v, c := open(t, keyspace.Options{Shards: 1})
	for i := range n {
		require.NoError(t, v.Put(0, key(i), entry.String, nil, entry.NoExpiry))
	}
	for db := 1; db < 16; db++ {
		for i := range 100 {
			require.NoError(t, v.Put(db, key(i), entry.String, nil, t0.Add(1)))
		}
	}
	c.Advance(1)
	removed, looked := 0, 0
	for removed < 1500 {
		s := ks.Sweep(64)
		removed += s.Removed
		looked += s.Looked
		require.Less(t, looked, 10_000)
	}
}

// TestRun runs housekeeping in a synctest bubble with a clock that is like a real one: expired keys
// are removed without a lookup, and Run ends with its context.
func TestRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ks := keyspace.New(keyspace.Options{Clock: clock.NewSystem(clock.Options{}.WithSources(
			func() int64 { return time.Now().UnixNano() }, func() int64 { return time.Now().UnixNano() }, func() int64 { return time.Now().UnixNano() }))})
		defer ks.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			ks.Run(ctx)
			close(ended)
		}()
		v := ks.NewHandle()
		for i := range 1000 {
			_, err := asks.Throttle(v, 0, fmt.Append(nil, i), quota(t), 1)
			require.NoError(t, err)
		}
		time.Sleep(1900 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1000, v.Len(0))
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, v.Len(0))
		cancel()
		<-ended
	})
}

// busyClock moves by a millisecond at each reading.
type busyClock struct{ *clocktest.Clock }

func (c busyClock) Now() limit.Instant {
	c.Advance(time.Millisecond)
	return c.Clock.Now()
}

// TestSweepTellsHowLongItLocksAShard: LATENCY needs these times.
func TestSweepTellsHowLongItLocksAShard(t *testing.T) {
	var took, sum []time.Duration
	ks := keyspace.New(keyspace.Options{
		Clock: busyClock{clocktest.New(t0)}, Swept: func(d, all time.Duration) { took, sum = append(took, d), append(sum, all) },
	})
	t.Cleanup(ks.Close)
	ks.Sweep(100)
	ks.Sweep(100)
	require.Len(t, took, 2)
	for i, d := range took {
		require.GreaterOrEqual(t, d, time.Millisecond)
		require.Less(t, d, 10*time.Millisecond, "one shard, not the whole round")
		require.GreaterOrEqual(t, sum[i], 10*d, "the whole round")
	}
}
