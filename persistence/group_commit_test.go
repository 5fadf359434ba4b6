package persistence_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// bell is a waker for which a test can wait.
type bell chan struct{}

// Wake implements persistence.Waker.
func (b bell) Wake() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// TestEveryWaiterForAnFsyncIsWoken asks for durability under SyncAlways while an fsync is
// delayed or in flight. That fsync or the next wakes each caller.
func TestEveryWaiterForAnFsyncIsWoken(t *testing.T) {
	s := mustOpen(t, faultfs.New(), persistence.SyncAlways)
	defer s.close()
	const clients, calls = 30, 200
	var all sync.WaitGroup
	outcomes := make([]int, clients)
	for i := range clients {
		all.Go(func() {
			ring := make(bell, 1)
			for range calls {
				pos := s.log.Append([]byte{65, byte(i % 3)}, nil, begin)
				out := s.log.Await(pos, ring)
				for out == persistence.Pending {
					<-ring
					out = s.log.Await(pos, ring)
				}
				if out == persistence.Kept {
					outcomes[i]++
				}
			}
		})
	}
	all.Wait()
	for i := range clients {
		require.Equal(t, calls, outcomes[i])
	}
	require.LessOrEqual(t, s.log.Stats().Syncs, int64(clients*calls))
}

// TestCallersDoNotWaitForALongWrite asks for durability while a write is in flight that
// does not end. The caller does not block; it is notified later.
func TestCallersDoNotWaitForALongWrite(t *testing.T) {
	for _, p := range []persistence.Policy{persistence.SyncEverySecond, persistence.SyncNo} {
		fsys, clock := faultfs.New(), clocktest.New(begin)
		var now atomic.Int64
		o := options(fsys, clock)
		o.Stopwatch = func() time.Duration { return time.Duration(now.Load()) }
		dir, err := persistence.Open(o)
		require.NoError(t, err)
		require.NoError(t, dir.Load(keyspace.New(keyspace.Options{Clock: clock, Shards: 1}), &persistence.Progress{}))
		log, err := dir.Start(persistence.LogOptions{Policy: p, Tick: time.Hour})
		require.NoError(t, err)

		hangs, gate := make(chan struct{}), make(chan struct{})
		fsys.Inject(func(n int, _ faultfs.Call) error {
			if n == 1 {
				close(hangs)
				<-gate
			}
			return nil
		})
		first := make(chan persistence.Outcome, 1)
		pos := log.Append([]byte("first"), nil, begin)
		go func() { first <- log.Await(pos, nil) }()
		<-hangs
		ring := make(bell, 1)
		pos = log.Append([]byte("second"), nil, begin)
		require.Equal(t, persistence.Pending, log.Await(pos, ring), "before that is long")
		now.Add(int64(6 * time.Millisecond))
		require.Equal(t, persistence.Pending, log.Await(pos, ring), "and after that")
		close(gate)
		require.Equal(t, persistence.Kept, <-first)
		<-ring
		require.Equal(t, persistence.Kept, log.Await(pos, ring))
		require.NoError(t, dir.Close())
	}
}

// TestWhoeverAsksWithoutAWakerIsServed: no caller waits, as where a replica applies records, but
// appended records become as safe as the policy requires without a tick.
func TestWhoeverAsksWithoutAWakerIsServed(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncAlways)
	synced := make(chan struct{}, 8)
	fsys.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == "sync" {
			synced <- struct{}{}
		}
		return nil
	})
	for range 3 {
		pos := s.log.Append([]byte("record"), nil, begin)
		require.Equal(t, persistence.Pending, s.log.Await(pos, nil))
		<-synced
		ring := make(bell, 1)
		for s.log.Await(pos, ring) == persistence.Pending {
			<-ring
		}
		require.GreaterOrEqual(t, s.log.Synced(), pos) // the log may add records of its own behind it
	}
	fsys.Inject(nil)
	s.close()
}

// TestFsyncBeginsWhenMostExpectedCallersHaveCome: with fsyncs of 200 µs, for seven eighths of the
// expected callers, or for fewer if the others do not come.
func TestFsyncBeginsWhenMostExpectedCallersHaveCome(t *testing.T) {
	const us, fsync = time.Microsecond, 200 * time.Microsecond
	for name, c := range map[string]struct {
		n, crowd      int
		quiet, waited time.Duration
		want          bool
	}{
		"a lone client":                     {1, 1, 0, 0, true},
		"a lone client that has company":    {1, 0, 0, 0, true},
		"everybody":                         {50, 50, 0, time.Second, true},
		"more than ever":                    {60, 50, 0, 0, true},
		"enough of fifty":                   {44, 50, 0, 0, true},
		"too few of fifty":                  {43, 50, 0, 0, false},
		"too few, and seven do not come":    {43, 50, 271 * us, 400 * us, true},
		"too few, and seven may still come": {43, 50, 270 * us, 400 * us, false},
		"too few, who come slowly":          {43, 50, 0, 701 * us, true},
		"too few, who come":                 {43, 50, 0, 700 * us, false},
		"nobody of many yet":                {1, 500, 5 * time.Millisecond, 5 * time.Millisecond, false},
		"nobody of many":                    {1, 500, 5200 * us, 5200 * us, true},
		"two of three":                      {2, 3, 210 * us, 220 * us, false},
		"two of three, and it took long":    {2, 3, 211 * us, 220 * us, true},
	} {
		require.Equal(t, c.want, persistence.Due(c.n, c.crowd, c.quiet, c.waited, fsync), name)
	}
}

// TestExpectedCallersShrinkByDegrees: callers that are sending their next command are expected, and
// forgotten if they do not come.
func TestExpectedCallersShrinkByDegrees(t *testing.T) {
	require.Equal(t, 500, persistence.Expected(500, 10))
	require.Equal(t, 375, persistence.Expected(250, 500))
	crowd, fsyncs := 500, 0
	for ; crowd > 1; fsyncs++ {
		crowd = persistence.Expected(1, crowd)
	}
	require.LessOrEqual(t, fsyncs, 20)
	require.Zero(t, persistence.Expected(0, 1))
}
