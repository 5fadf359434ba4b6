package faultfs_test

import (
	"bytes"
	"io"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

func write(t *testing.T, f persistence.File, s string) {
	t.Helper()
	n, err := f.Write([]byte(s))
	require.NoError(t, err)
	require.Equal(t, len(s), n)
}

func created(t *testing.T, m *faultfs.FS, name, content string) persistence.File {
	t.Helper()
	f, err := m.Create(name)
	require.NoError(t, err)
	write(t, f, content)
	return f
}

func TestFilesAreFiles(t *testing.T) {
	m := faultfs.New()
	f := created(t, m, "d/a", "hello")
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, 5, size)
	b := make([]byte, 3)
	n, err := f.ReadAt(b, 3)
	require.Equal(t, io.EOF, err)
	require.Equal(t, "lo", string(b[:n]))
	require.NoError(t, f.Truncate(2))
	require.NoError(t, f.Close())

	again, err := m.Append("d/a")
	require.NoError(t, err)
	write(t, again, "!")
	require.Equal(t, "he!", string(m.Content("d/a")))
	_, err = m.Open("d/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, m.Rename("d/none", "d/b"), fs.ErrNotExist)
	require.ErrorIs(t, m.Remove("d/none"), fs.ErrNotExist)
	require.NoError(t, m.Rename("d/a", "d/b"))
	created(t, m, "d/deeper/c", "")
	names, err := m.List("d")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names)
	require.NoError(t, m.Remove("d/b"))
	require.Equal(t, []string{"d/deeper/c"}, m.Names())
	require.Nil(t, m.Content("d/b"))
}

func TestLockedDirectoryIsNotLockedAgain(t *testing.T) {
	m := faultfs.New()
	lock, err := m.Lock("d/lock")
	require.NoError(t, err)
	_, err = m.Lock("d/lock")
	require.ErrorIs(t, err, persistence.ErrLocked)
	require.NoError(t, lock.Close())
	_, err = m.Lock("d/lock")
	require.NoError(t, err)
}

// TestInjection: every call that changes or syncs something is counted, and can be made to fail.
func TestInjection(t *testing.T) {
	m := faultfs.New()
	f := created(t, m, "d/a", "1234")
	m.Inject(func(n int, c faultfs.Call) error {
		switch n {
		case 1:
			return syscall.ENOSPC
		case 2:
			return faultfs.ErrShort
		case 4:
			return syscall.EIO
		}
		return nil
	})
	n, err := f.Write([]byte("abcd"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Zero(t, n)
	n, err = f.Write([]byte("abcd"))
	require.ErrorIs(t, err, faultfs.ErrShort)
	require.Equal(t, 2, n)
	write(t, f, "!")
	require.ErrorIs(t, f.Sync(), syscall.EIO)
	require.Equal(t, "1234ab!", string(m.Content("d/a")))
	var calls []string
	for _, c := range m.Calls() {
		calls = append(calls, c.String())
	}
	require.Equal(t, []string{"write d/a 4", "write d/a 4", "write d/a 1", "sync d/a"}, calls)
	m.Inject(nil)
	require.NoError(t, f.Sync())
}

// TestDataOfAFailedSyncIsNeverWritten: data that a failed Sync did not write is never written,
// although the next Sync succeeds.
func TestDataOfAFailedSyncIsNeverWritten(t *testing.T) {
	m := faultfs.New()
	f := created(t, m, "d/a", "one")
	require.NoError(t, f.Sync())
	require.NoError(t, m.SyncDir("d"))
	write(t, f, "two")
	m.Inject(func(int, faultfs.Call) error { return syscall.EIO })
	require.Error(t, f.Sync())
	m.Inject(nil)
	write(t, f, "three")
	require.NoError(t, f.Sync())
	require.Equal(t, "onetwothree", string(m.Content("d/a")))
	lost := 0
	for seed := range uint64(20) {
		got := string(m.Crash(rand.New(rand.NewPCG(seed, 1))).Content("d/a"))
		require.Contains(t, []string{"one\x00\x00\x00three", "onetwothree"}, got)
		if got != "onetwothree" {
			lost++
		}
	}
	require.Positive(t, lost)
}

// TestCrash: a power failure may lose content and names that were not synced, each independently.
// It never loses synced ones.
func TestCrash(t *testing.T) {
	m := faultfs.New()
	f := created(t, m, "d/kept", "synced")
	require.NoError(t, f.Sync())
	require.NoError(t, m.SyncDir("d"))
	write(t, f, " and more")
	g := created(t, m, "d/unnamed", "synced")
	require.NoError(t, g.Sync())

	lengths, named := map[int]bool{}, map[bool]bool{}
	for seed := range uint64(500) {
		after := m.Crash(rand.New(rand.NewPCG(seed, 1)))
		content := after.Content("d/kept")
		require.GreaterOrEqual(t, len(content), len("synced"))
		require.Equal(t, "synced", string(content[:6]))
		tail := content[6:]
		require.True(t, bytes.HasPrefix([]byte(" and more"), tail) || len(bytes.Trim(tail, "\x00")) == 0, "%q", tail)
		lengths[len(content)] = true
		left := after.Content("d/unnamed")
		require.True(t, left == nil || string(left) == "synced")
		named[left != nil] = true
		require.Equal(t, after.Names(), after.Crash(rand.New(rand.NewPCG(seed, 2))).Names(), "what is left is on the disk")
	}
	require.Len(t, lengths, len(" and more")+1)
	require.Len(t, named, 2)
}

// TestCrashedRename: a rename that was not durable happens as a whole or not at all.
func TestCrashedRename(t *testing.T) {
	m := faultfs.New()
	require.NoError(t, created(t, m, "d/old", "old").Sync())
	require.NoError(t, created(t, m, "d/new", "new").Sync())
	require.NoError(t, m.SyncDir("d"))
	require.NoError(t, m.Rename("d/new", "d/old"))
	outcomes := map[string]bool{}
	for seed := range uint64(100) {
		after := m.Crash(rand.New(rand.NewPCG(seed, 1)))
		if content := string(after.Content("d/old")); content == "old" {
			require.Equal(t, "new", string(after.Content("d/new")))
			outcomes["before"] = true
		} else {
			require.Equal(t, "new", content)
			require.Nil(t, after.Content("d/new"))
			outcomes["after"] = true
		}
	}
	require.Len(t, outcomes, 2)
	require.NoError(t, m.SyncDir("d"))
	require.Equal(t, []string{"d/old"}, m.Crash(rand.New(rand.NewPCG(1, 1))).Names())
}

// TestKill: the death of the process loses no written data, and the returned disk is independent of
// the old one.
func TestKill(t *testing.T) {
	m := faultfs.New()
	f := created(t, m, "d/a", "not synced")
	after := m.Kill()
	require.Equal(t, "not synced", string(after.Content("d/a")))
	write(t, f, "!")
	require.Equal(t, "not synced", string(after.Content("d/a")))
	require.Equal(t, "not synced", string(after.Crash(rand.New(rand.NewPCG(1, 1))).Content("d/a")))
}

// TestWatch: the function sees the disk before each call.
func TestWatch(t *testing.T) {
	m := faultfs.New()
	var seen []string
	m.Watch(func(n int, crash func(*rand.Rand) *faultfs.FS) {
		seen = append(seen, string(crash(rand.New(rand.NewPCG(uint64(n), 1))).Content("d/a")))
	})
	m.SetContent("d/a", []byte("set"))
	f, err := m.Append("d/a")
	require.NoError(t, err)
	require.NoError(t, f.Truncate(0))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.Equal(t, "set", seen[0])
	require.Equal(t, "set", seen[1])
	require.Empty(t, seen[3])
}
