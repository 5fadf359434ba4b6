package persistence_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/persistence"
)

var errSync = errors.New("a full sync began")

// replaceState replaces all keys by others, as a full resynchronization does.
func (s *stage) replaceState() {
	for db := range 3 {
		require.NoError(s.t, s.ks.Apply(effect.Effect{DB: db, Flush: true}))
	}
	for i := range 20 {
		e := entry.Entry{Kind: entry.String, Value: []byte("new"), Expiry: entry.NoExpiry}
		require.NoError(s.t, s.ks.Restore(i%3, fmt.Appendf(nil, "new:%d", i), e))
	}
}

// suspended returns a stage with a durable state on disk and another state in memory.
func suspended(t *testing.T, p persistence.Policy) (s *stage, old, now string) {
	s = mustOpen(t, faultfs.New(), p)
	rng := rand.New(rand.NewPCG(4, 2))
	for range 30 {
		s.act(rng)
	}
	old = s.state()
	s.log.Suspend(errSync)
	s.replaceState()
	return s, old, s.state()
}

// TestDeathWhileSuspendedLeavesTheOldStateOrTheNew: any call of the rewrite may be the last one of
// the process or the machine. Afterwards the files have all of one state, and the new one if the
// rewrite had succeeded. Under every policy the old state is durable once the log has been
// suspended.
func TestDeathWhileSuspendedLeavesTheOldStateOrTheNew(t *testing.T) {
	for _, p := range []persistence.Policy{persistence.SyncNo, persistence.SyncAlways} {
		olds, news := 0, 0
		for last := 1; ; last++ {
			s, old, now := suspended(t, p)
			died := false
			s.fs.Inject(func(n int, _ faultfs.Call) error {
				if n >= last {
					died = true
					return syscall.EIO
				}
				return nil
			})
			_, err := s.dir.Rewrite(s.ks)
			want := []string{old, now}
			if err == nil {
				want = want[1:]
			}
			rng := rand.New(rand.NewPCG(uint64(last), 1))
			for _, left := range []*faultfs.FS{s.fs.Kill(), s.fs.Crash(rng), s.fs.Crash(rng)} {
				after, err := open(t, left, s.clock, p)
				require.NoError(t, err, "call %d was the last", last)
				got := after.state()
				require.Contains(t, want, got, "call %d was the last", last)
				if got == old {
					olds++
				} else {
					news++
				}
				after.close()
			}
			s.ks.Close()
			if !died {
				break
			}
		}
		require.Greater(t, olds, 20)
		require.Greater(t, news, 3)
	}
}

// TestSuspendedLogGoesOnBehindANewBase: until then the log writes nothing and refuses effects,
// without OnFault. The tap is notified of the gap and gets the records after it.
func TestSuspendedLogGoesOnBehindANewBase(t *testing.T) {
	var said bytes.Buffer
	fsys, clock := faultfs.New(), clocktest.New(begin)
	o := options(fsys, clock)
	o.Log = slog.New(slog.NewTextHandler(&said, nil))
	dir, err := persistence.Open(o)
	require.NoError(t, err)
	faults := 0
	log, err := dir.Start(persistence.LogOptions{Tick: time.Hour, OnFault: func(error) { faults++ }})
	require.NoError(t, err)
	s := mustOpen(t, faultfs.New(), persistence.SyncNo) // provides a state
	s.replaceState()
	var got tape
	log.SetTap(&got)
	log.Append([]byte("before"), nil, begin)
	log.Suspend(errSync)
	require.Equal(t, 1, got.gaps)
	written := log.Written()
	require.Equal(t, log.Position(), written, "what was appended before is kept")
	require.Equal(t, log.Position(), log.Synced())

	fsys.Inject(nil)
	pos := log.Append([]byte("while"), nil, begin)
	require.Equal(t, persistence.Lost, log.Await(pos, nil))
	require.ErrorIs(t, log.NoteClock(), errSync)
	require.ErrorIs(t, log.Sync(), errSync)
	log.Tick()
	require.Empty(t, fsys.Calls())
	require.True(t, log.Refuses())
	require.ErrorIs(t, log.Fault(), errSync)

	_, err = dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.False(t, log.Refuses())
	require.NoError(t, log.Fault())
	require.Equal(t, 2, got.gaps)
	pos = log.Append([]byte("behind"), nil, begin)
	require.Equal(t, persistence.Kept, log.Await(pos, nil))
	all := frames(t, got.bytes)
	require.Len(t, all, 1)
	require.Equal(t, "behind", string(all[0].Body))
	require.Zero(t, faults)
	require.Zero(t, log.Stats().Faults)
	require.NotContains(t, said.String(), "ERROR")
	require.Contains(t, said.String(), errSync.Error())
	require.NoError(t, dir.Close())
	s.close()
}

// TestSuspendWhileALogHealsIsNotForgotten suspends the log when its new base is complete and before
// it accepts effects again. It continues to refuse, and the next base heals it.
func TestSuspendWhileALogHealsIsNotForgotten(t *testing.T) {
	s, _, _ := suspended(t, persistence.SyncAlways)
	again := false
	s.fs.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == "rename" && !again {
			again = true
			s.log.Suspend(errSync)
		}
		return nil
	})
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.True(t, again)
	require.True(t, s.log.Refuses())
	require.Equal(t, persistence.Lost, s.log.Await(s.log.Append([]byte{65, 0}, nil, begin), nil))
	_, err = s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.False(t, s.log.Refuses())
	require.NoError(t, s.handle.Put(0, []byte("last"), entry.String, []byte("v"), entry.NoExpiry))
	require.Equal(t, persistence.Kept, kept(s))
	want := s.state()
	after := mustOpenAgain(t, s)
	require.Equal(t, want, after.state())
	after.close()
}

// kept syncs and returns the outcome for the effects of the handle.
func kept(s *stage) persistence.Outcome {
	require.NoError(s.t, s.log.Sync())
	return s.settled()
}

// TestSuspendOfABrokenLogChangesNothing: the fault remains that of the disk.
func TestSuspendOfABrokenLogChangesNothing(t *testing.T) {
	s := mustOpen(t, faultfs.New(), persistence.SyncAlways)
	s.fs.Inject(func(int, faultfs.Call) error { return syscall.EIO })
	s.act(rand.New(rand.NewPCG(1, 1)))
	s.log.Suspend(errSync)
	require.ErrorIs(t, s.log.Fault(), syscall.EIO)
	s.fs.Inject(nil)
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.False(t, s.log.Refuses())
	s.close()
}
