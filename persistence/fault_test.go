package persistence_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// faultRun acts, rewrites and acts again on a disk that may fail. It returns all states that ever
// existed, the last of them that was acknowledged, and the stage, which is nil if the disk failed
// before there was one.
func faultRun(t *testing.T, fsys *faultfs.FS, p persistence.Policy) (states []string, acked int, s *stage) {
	rng := rand.New(rand.NewPCG(7, 7))
	s, err := open(t, fsys, clocktest.New(begin), p)
	if err != nil {
		return []string{""}, 0, nil
	}
	states = append(states, s.state())
	step := func() {
		if s.handle.Refuses() {
			return
		}
		s.act(rng)
		states = append(states, s.state())
		out := s.settled()
		if out == persistence.Pending {
			_ = s.log.Sync() // the outcome is checked next
			out = persistence.Lost
			if !s.log.Refuses() {
				out = persistence.Kept
			}
		}
		if out == persistence.Kept {
			acked = len(states) - 1
		}
	}
	for range 2 {
		for range 6 {
			step()
		}
		s.log.Tick()
		_, _ = s.dir.Rewrite(s.ks) // the caller checks what can be loaded
	}
	for range 4 {
		step()
	}
	s.log.Tick()
	return states, acked, s
}

// Whichever call of a run with two rewrites fails, and however it fails, no acknowledged effect is
// lost, and the log works again once the disk does.
func TestEveryCallMayFail(t *testing.T) {
	effort.Alone(t)
	for _, p := range []persistence.Policy{persistence.SyncEverySecond, persistence.SyncAlways} {
		for _, fault := range []error{syscall.EIO, syscall.ENOSPC, faultfs.ErrShort} {
			n := 1
			for ; failOne(t, p, fault, n); n++ {
			}
			require.Greater(t, n, 60)
			t.Logf("policy %d, %v: each of %d calls", p, fault, n-1)
		}
	}
}

// failOne fails call n and reports whether there was such a call.
func failOne(t *testing.T, p persistence.Policy, fault error, n int) bool {
	fsys := faultfs.New()
	var hit string
	fsys.Inject(func(i int, c faultfs.Call) error {
		if i == n {
			hit = c.String()
			return fault
		}
		return nil
	})
	states, acked, s := faultRun(t, fsys, p)
	if hit == "" {
		fsys.Inject(nil)
		s.close()
		return false
	}
	about := fmt.Sprintf("policy %d, %v at call %d, %s", p, fault, n, hit)
	fsys.Inject(nil)
	clock := clocktest.New(begin)
	if s != nil {
		clock = s.clock
	}
	past := alive(states[acked:], clock)
	after, err := open(t, fsys.Kill(), clock, p)
	require.NoError(t, err, about)
	require.Contains(t, past, after.state(), "after a kill: %s", about)
	if s == nil {
		return true
	}
	if p == persistence.SyncAlways {
		lost, err := open(t, fsys.Crash(rand.New(rand.NewPCG(uint64(n), 3))), clock, p)
		require.NoError(t, err, about)
		require.Contains(t, past, lost.state(), "after a power failure: %s", about)
	}
	_, err = s.dir.Rewrite(s.ks)
	require.NoError(t, err, about)
	require.False(t, s.handle.Refuses(), about)
	s.act(rand.New(rand.NewPCG(1, uint64(n))))
	require.NoError(t, s.log.Sync(), about)
	want := s.state()
	s.close()
	again, err := open(t, fsys, clock, p)
	require.NoError(t, err, about)
	require.Equal(t, withoutExpired(want, clock.Now()), again.state(), about)
	return true
}

// A failed fsync is not repeated on the same file, whose pages the kernel may have
// marked clean.
func TestNoFileIsSyncedAgainAfterAFailure(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncEverySecond)
	defer s.close()
	failed := ""
	syncs := map[string]int{}
	fsys.Inject(func(_ int, c faultfs.Call) error {
		if c.Op != "sync" {
			return nil
		}
		syncs[c.Name]++
		if failed == "" {
			failed = c.Name
			return syscall.EIO
		}
		return nil
	})
	require.NoError(t, s.handle.Put(0, []byte("key"), entry.String, []byte("value"), entry.NoExpiry))
	require.ErrorIs(t, s.log.Sync(), syscall.EIO)
	require.True(t, s.handle.Refuses())
	require.ErrorIs(t, s.log.Fault(), syscall.EIO)
	for range 3 {
		s.log.Tick()
	}
	require.Equal(t, 1, syncs[failed])
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.False(t, s.handle.Refuses())
	require.NoError(t, s.log.Fault())
	require.Equal(t, 1, syncs[failed])
}

// The second of two servers on one directory refuses to start.
func TestSecondServerOnADirectoryRefusesToStart(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	_, err := persistence.Open(options(fsys, s.clock))
	require.ErrorIs(t, err, persistence.ErrLocked)
	s.close()
	_, err = persistence.Open(options(fsys, s.clock))
	require.NoError(t, err)
}

// The manifest is switched by writing another file, syncing it, renaming it and syncing
// the directory, in that order, after the base is durable under its name.
func TestManifestIsSwitchedInOrder(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncAlways)
	defer s.close()
	fsys.Inject(nil)
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	var got []string
	for _, c := range fsys.Calls() {
		c.Size = 0
		got = append(got, c.String())
	}
	require.Equal(t, []string{
		"create data/incr.2.log", "write data/incr.2.log 0", "sync data/incr.2.log", "syncdir data",
		"create data/cellserver.manifest.tmp", "write data/cellserver.manifest.tmp 0", "sync data/cellserver.manifest.tmp", "close data/cellserver.manifest.tmp",
		"rename data/cellserver.manifest", "syncdir data",
		"write data/incr.1.log 0",
		"create data/base.3.snap", "write data/base.3.snap 0", "write data/base.3.snap 0", "sync data/base.3.snap", "close data/base.3.snap", "syncdir data",
		"sync data/incr.1.log", "close data/incr.1.log", "sync data/incr.2.log",
		"write data/incr.2.log 0", // the durable-offset record for the base
		"create data/cellserver.manifest.tmp", "write data/cellserver.manifest.tmp 0", "sync data/cellserver.manifest.tmp", "close data/cellserver.manifest.tmp",
		"rename data/cellserver.manifest", "syncdir data",
		"list data", "remove data/incr.1.log",
	}, got)
}

// A record that is too large for a file is not written: the log is given up and healed.
func TestRecordTooLarge(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	require.Equal(t, persistence.Lost, s.log.Await(s.log.Append(make([]byte, 1<<30), nil, begin), nil))
	require.True(t, s.log.Refuses())
	require.ErrorContains(t, s.log.Fault(), "more than")
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.False(t, s.log.Refuses())
	s.close()
	mustOpen(t, fsys, persistence.SyncNo).close()
}
