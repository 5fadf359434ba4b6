package persistence_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/persistence"
)

// volatile is a stage with a log without a file.
func volatile(t testing.TB) *stage {
	s := &stage{t: t, clock: clocktest.New(begin)}
	s.ks = keyspace.New(keyspace.Options{Clock: s.clock, Shards: 4, Databases: 3})
	goroutines := runtime.NumGoroutine()
	s.log = persistence.NewVolatile(persistence.LogOptions{
		Policy:    persistence.SyncAlways,
		Stopwatch: func() time.Duration { return time.Millisecond },
		Clock:     func() clock.Record { return clock.Record{Derived: s.clock.Now()} },
		Log:       slog.New(slog.DiscardHandler),
	})
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "it needs none")
	s.ks.SetJournal(s.log)
	s.handle = s.ks.NewHandle()
	q, err := gcra.NewQuota(5, 10, 60)
	require.NoError(t, err)
	s.quota = q
	return s
}

// TestVolatileLogGivesItsTapEverything: Await passes records on at once under every policy, and
// they have the whole state, long values included.
func TestVolatileLogGivesItsTapEverything(t *testing.T) {
	s := volatile(t)
	var got tape
	s.log.SetTap(&got)
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 100 {
		s.act(rng)
		if i%30 == 0 {
			setValues(s, 'l', 300_000)
		}
		pos := s.log.Position()
		require.Equal(t, persistence.Kept, s.log.Await(pos, nil))
		require.Equal(t, pos, got.end)
		require.Equal(t, pos, s.log.Written())
	}
	require.Equal(t, s.state(), stateAfter(t, s, frames(t, got.bytes)))
	for rest := got.bytes; len(rest) > 0; {
		require.Equal(t, make([]byte, 4), rest[4:8], "a checksum that nobody looks at")
		_, n, err := persistence.NextFrame(rest)
		require.NoError(t, err)
		rest = rest[n:]
	}
	require.EqualValues(t, 1, s.log.Synced(), "nothing is durable")
	require.NoError(t, s.log.Sync())
	require.EqualValues(t, 1, s.log.Synced())
	st := s.log.Stats()
	require.Zero(t, st.Unsafe)
	require.Zero(t, st.Buffered)
	require.Zero(t, st.Syncs)
	require.False(t, s.log.Refuses())
	s.log.SetPolicy(persistence.SyncAlways)
	s.act(rng)
	require.Equal(t, persistence.Kept, s.log.Await(s.log.Position(), nil))
	s.handle.FlushAll()
	require.NoError(t, s.log.Close())
	require.Zero(t, s.ks.InHeap(), "something is referred to")
	require.Equal(t, s.log.Position(), got.end)
	require.Zero(t, got.gaps)
	require.True(t, s.log.Refuses())
	require.Equal(t, persistence.Lost, s.log.Await(s.log.Append([]byte("late"), nil, begin), nil))
	s.ks.Close()
}

// TestVolatileLogIsNeverLost: several goroutines use the log. For each its record is kept at once,
// and the tap gets all of them, each in one piece.
func TestVolatileLogIsNeverLost(t *testing.T) {
	s := volatile(t)
	var got tape
	s.log.SetTap(&got)
	const writers, records = 16, 500
	var all sync.WaitGroup
	outcomes := make([]int, writers)
	for i := range writers {
		all.Go(func() {
			for n := range records {
				if s.log.Await(s.log.Append(fmt.Appendf(nil, "%d/%d", i, n), nil, begin), nil) == persistence.Kept {
					outcomes[i]++
				}
			}
		})
	}
	all.Wait()
	next := make([]int, writers)
	for _, f := range frames(t, got.bytes) {
		var i, n int
		_, err := fmt.Sscanf(string(f.Body), "%d/%d", &i, &n)
		require.NoError(t, err)
		require.Equal(t, next[i], n)
		next[i]++
	}
	for i := range writers {
		require.Equal(t, records, next[i])
		require.Equal(t, records, outcomes[i])
	}
	require.NoError(t, s.log.Close())
}

// TestVolatileLogHasAGapInsteadOfAFault: a record that is too large for replicas, and a replaced
// state, are gaps. Nothing is refused, and later records are passed on.
func TestVolatileLogHasAGapInsteadOfAFault(t *testing.T) {
	s := volatile(t)
	var got tape
	s.log.SetTap(&got)
	s.log.Append([]byte("before"), nil, begin)
	require.Equal(t, persistence.Kept, s.log.Await(s.log.Append(make([]byte, 1<<30), nil, begin), nil))
	require.Equal(t, 1, got.gaps)
	require.Empty(t, got.bytes)
	require.Equal(t, s.log.Position(), got.end, "positions were passed over")
	require.Equal(t, persistence.Kept, s.log.Await(s.log.Append([]byte("behind"), nil, begin), nil))
	require.Len(t, frames(t, got.bytes), 1)
	s.log.Suspend(errSync)
	require.Equal(t, 2, got.gaps)
	require.False(t, s.log.Refuses())
	require.NoError(t, s.log.Fault())
	require.NoError(t, s.log.NoteClock())
	require.Len(t, frames(t, got.bytes), 1)
	require.Equal(t, s.log.Position(), got.end)
	require.NoError(t, s.log.Close())
}
