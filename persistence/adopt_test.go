package persistence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// policies are all policies.
var policies = []persistence.Policy{persistence.SyncNo, persistence.SyncEverySecond, persistence.SyncAlways}

// put stores a key and returns the outcome.
func (s *stage) put(key string) persistence.Outcome {
	require.NoError(s.t, s.handle.Put(0, []byte(key), entry.String, []byte("v"), entry.NoExpiry))
	return s.settled()
}

// TestDeathDuringAdoptionLeavesTheOldStateOrTheNew: any call of an adoption may be the last one of
// the process or the machine, while effects are appended all the time. Afterwards the files have
// either the old state or one that memory had since the adoption began. Once the adoption has
// ended, no acknowledged effect is lost.
func TestDeathDuringAdoptionLeavesTheOldStateOrTheNew(t *testing.T) {
	effort.Alone(t)
	for _, p := range policies {
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
			states, acked := []string{now}, 0
			rng := rand.New(rand.NewPCG(uint64(last), 1))
			act := func() {
				if !s.log.Refuses() {
					s.act(rng)
				}
				states = append(states, s.state())
			}
			err := s.dir.AcceptState()
			for range 5 {
				act()
			}
			s.log.Tick()
			if err == nil {
				_, err = s.dir.Rewrite(busySource{s.ks, act})
			}
			switched := err == nil
			if switched {
				act()
				if s.log.Sync() == nil && s.settled() == persistence.Kept {
					acked = len(states) - 1
				}
			}
			want := states[acked:]
			if !switched {
				want = append(want, old)
			}
			for _, left := range []*faultfs.FS{s.fs.Kill(), s.fs.Crash(rng), s.fs.Crash(rng)} {
				after, err := open(t, left, s.clock, p)
				require.NoError(t, err, "call %d was the last", last)
				got := after.state()
				require.Contains(t, alive(want, s.clock), got, "call %d was the last", last)
				if got == withoutExpired(old, s.clock.Now()) {
					olds++
				} else {
					news++
				}
				after.close()
			}
			s.ks.Close()
			if !died {
				require.True(t, switched)
				require.Positive(t, acked)
				break
			}
		}
		require.Greater(t, olds, 20)
		require.Greater(t, news, 3)
	}
}

// TestAdoptedLogAcceptsAtOnce: an effect is acknowledged before there is a base. Until then a crash
// loses it together with the whole new state.
func TestAdoptedLogAcceptsAtOnce(t *testing.T) {
	for _, p := range policies[:2] {
		s, old, _ := suspended(t, p)
		var got tape
		s.log.SetTap(&got)
		require.NoError(t, s.dir.AcceptState())
		require.NoError(t, s.dir.AcceptState(), "again")
		require.False(t, s.log.Refuses())
		require.NoError(t, s.log.Fault())
		synced := s.log.Synced()
		require.Equal(t, persistence.Kept, s.put("between"))
		require.NoError(t, s.log.Sync())
		require.Equal(t, synced, s.log.Synced(), "nothing is durable")
		require.Contains(t, string(got.bytes), "between", "replicas get it")

		during := busySource{s.ks, func() {
			require.Equal(t, persistence.Kept, s.put("during"))
			after := mustOpenCopy(t, s)
			require.Equal(t, old, after.state())
			after.close()
		}}
		_, err := s.dir.Rewrite(during)
		require.NoError(t, err)
		require.NoError(t, s.log.Sync())
		require.Greater(t, s.log.Synced(), synced)
		require.Equal(t, persistence.Kept, s.put("behind"))
		after := mustOpenCopy(t, s)
		require.Equal(t, s.state(), after.state())
		after.close()
		s.close()
	}
}

// mustOpenCopy opens the files as they would be if the process died now.
func mustOpenCopy(t *testing.T, s *stage) *stage {
	after, err := open(t, s.fs.Kill(), s.clock, persistence.SyncNo)
	require.NoError(t, err)
	return after
}

// TestAdoptedLogHasOthersWaitUntilAllIsDurable: under SyncAlways an effect is acknowledged when
// there is a base. Before, it is neither refused nor synced again and again.
func TestAdoptedLogHasOthersWaitUntilAllIsDurable(t *testing.T) {
	s, old, _ := suspended(t, persistence.SyncAlways)
	s.fs.Inject(nil)
	require.NoError(t, s.dir.AcceptState())
	rings := []bell{make(bell, 1), make(bell, 1)}
	var ends []uint64
	for i, ring := range rings {
		require.NoError(t, s.handle.Put(0, fmt.Append(nil, "waits ", i), entry.String, []byte("v"), entry.NoExpiry))
		ends = append(ends, s.handle.TakePosition())
		require.Equal(t, persistence.Pending, s.log.Await(ends[i], ring))
	}
	s.log.Tick()
	require.NoError(t, s.log.Sync())
	for i, ring := range rings {
		require.Empty(t, ring)
		require.Equal(t, persistence.Pending, s.log.Await(ends[i], nil))
	}
	after := mustOpenCopy(t, s)
	require.Equal(t, old, after.state())
	after.close()
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	for i, ring := range rings {
		for <-ring; s.log.Await(ends[i], ring) == persistence.Pending; <-ring {
		}
		require.Equal(t, persistence.Kept, s.log.Await(ends[i], nil))
	}
	crashed, err := open(t, s.fs.Crash(rand.New(rand.NewPCG(1, 1))), s.clock, persistence.SyncAlways)
	require.NoError(t, err)
	require.Equal(t, s.state(), crashed.state())
	crashed.close()
	syncs := 0
	for _, c := range s.fs.Calls() {
		if c.Op == "sync" {
			syncs++
		}
	}
	require.Less(t, syncs, 20)
	s.close()
}

// TestAdoptionThatFailsRefusesAgain with the error of the disk. Waiting callers get it, and the
// next base heals the log.
func TestAdoptionThatFailsRefusesAgain(t *testing.T) {
	for _, p := range policies {
		for _, file := range []string{"base", "manifest.tmp"} {
			s, old, _ := suspended(t, p)
			require.NoError(t, s.dir.AcceptState())
			require.NoError(t, s.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
			end, ring := s.handle.TakePosition(), make(bell, 1)
			_ = s.log.Await(end, ring) // the outcome is checked below
			s.fs.Inject(func(_ int, c faultfs.Call) error {
				if c.Op == "create" && strings.Contains(c.Name, file) {
					return syscall.ENOSPC
				}
				return nil
			})
			_, err := s.dir.Rewrite(s.ks)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.True(t, s.log.Refuses())
			require.ErrorIs(t, s.log.Fault(), syscall.ENOSPC)
			if p == persistence.SyncAlways {
				<-ring
				require.Equal(t, persistence.Lost, s.log.Await(end, ring))
			}
			after := mustOpenCopy(t, s)
			require.Equal(t, old, after.state())
			after.close()
			s.fs.Inject(nil)
			_, err = s.dir.Rewrite(s.ks)
			require.NoError(t, err)
			require.False(t, s.log.Refuses())
			require.NoError(t, s.handle.Put(0, []byte("l"), entry.String, []byte("v"), entry.NoExpiry))
			require.Equal(t, persistence.Kept, kept(s))
			after = mustOpenCopy(t, s)
			require.Equal(t, s.state(), after.state())
			after.close()
			s.close()
		}
	}
}

// TestAdoptionMayBeInterrupted: afterwards the old files are there and no others, and the next base
// is written without an interruption.
func TestAdoptionMayBeInterrupted(t *testing.T) {
	again := errors.New("another full sync")
	s, old, _ := suspended(t, persistence.SyncEverySecond)
	names := s.fs.Names()
	require.NoError(t, s.dir.AcceptState())
	require.Equal(t, persistence.Kept, s.put("k"))
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := s.dir.RewriteContext(ctx, busySource{s.ks, func() { cancel(again) }})
	require.ErrorIs(t, err, again)
	require.ErrorIs(t, s.log.Fault(), again)
	require.ElementsMatch(t, names, s.fs.Names())
	after := mustOpenCopy(t, s)
	require.Equal(t, old, after.state())
	after.close()

	require.NoError(t, s.dir.AcceptState())
	require.Equal(t, persistence.Kept, s.put("l"))
	_, err = s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	after = mustOpenCopy(t, s)
	require.Equal(t, s.state(), after.state())
	after.close()
	s.close()
}

// TestAdoptionOfALogThatFailsAgain before its base is written: the base heals the log nevertheless.
func TestAdoptionOfALogThatFailsAgain(t *testing.T) {
	for name, again := range map[string]func(s *stage){
		"suspended": func(s *stage) { s.log.Suspend(errSync) },
		"broken": func(s *stage) {
			s.fs.Inject(func(int, faultfs.Call) error { return syscall.EIO })
			require.Error(s.t, s.log.NoteClock())
			s.fs.Inject(nil)
		},
		"adopted anew": func(s *stage) {
			s.log.Suspend(errSync)
			require.NoError(s.t, s.dir.AcceptState())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := suspended(t, persistence.SyncEverySecond)
			require.NoError(t, s.dir.AcceptState())
			again(s)
			_, err := s.dir.Rewrite(s.ks)
			require.NoError(t, err)
			require.Equal(t, persistence.Kept, s.put("k"))
			require.NoError(t, s.log.Sync())
			require.Equal(t, s.log.Position(), s.log.Synced())
			require.Len(t, s.fs.Names(), 3, "base, increment and manifest: %v", s.fs.Names())
			after := mustOpenCopy(t, s)
			require.Equal(t, s.state(), after.state())
			after.close()
			s.close()
		})
	}
}

// TestDirThatIsClosedDuringAdoption keeps the old files.
func TestDirThatIsClosedDuringAdoption(t *testing.T) {
	s, old, _ := suspended(t, persistence.SyncAlways)
	require.NoError(t, s.dir.AcceptState())
	require.NoError(t, s.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
	end := s.handle.TakePosition()
	require.Equal(t, persistence.Pending, s.log.Await(end, nil))
	s.close()
	require.Equal(t, persistence.Lost, s.log.Await(end, nil))
	after := mustOpenCopy(t, s)
	require.Equal(t, old, after.state())
	after.close()
}

// TestDamageOfAnAdoptedLogLoadsAKnownStateOrIsRefused, like that of any other base: if it were cut
// at the damage, the log would end before the base.
func TestDamageOfAnAdoptedLogLoadsAKnownStateOrIsRefused(t *testing.T) {
	s, _, _ := suspended(t, persistence.SyncEverySecond)
	require.NoError(t, s.dir.AcceptState())
	rng := rand.New(rand.NewPCG(2, 8))
	_, err := s.dir.Rewrite(busySource{s.ks, func() { s.act(rng) }})
	require.NoError(t, err)
	states := []string{withoutExpired(s.state(), s.clock.Now())}
	dead := s.fs.Kill()
	name := logFile(dead)
	content := dead.Content(name)
	refused := 0
	for at := range content {
		flipped := bytes.Clone(content)
		flipped[at] ^= 4
		again, err := open(t, with(dead, name, flipped), s.clock, persistence.SyncNo)
		if err != nil {
			refused++
			continue
		}
		require.Contains(t, states, again.state(), "byte %d of %d", at, len(content))
		again.ks.Close()
	}
	require.Positive(t, refused)
	s.close()
}
