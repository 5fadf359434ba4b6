package server_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// hungFS is a disk whose fsyncs of files do not return while it hangs.
type hungFS struct {
	persistence.OS
	hangs   atomic.Bool
	waiting atomic.Int64
	gate    chan struct{}
	once    sync.Once
}

func (h *hungFS) release() { h.once.Do(func() { close(h.gate) }) }

type hungFile struct {
	persistence.File
	fs *hungFS
}

// Create implements persistence.FS.
func (h *hungFS) Create(name string) (persistence.File, error) {
	f, err := h.OS.Create(name)
	return hungFile{f, h}, err
}

// Sync implements persistence.File.
func (f hungFile) Sync() error {
	if f.fs.hangs.Load() {
		f.fs.waiting.Add(1)
		<-f.fs.gate
	}
	return f.File.Sync()
}

// TestKillBehindAHungDisk: while an fsync hangs, nobody is answered whose effect has
// to pass it, everybody else is, and a client that is killed goes at once. What it
// did has happened all the same.
func TestKillBehindAHungDisk(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		disk := &hungFS{gate: make(chan struct{})}
		c, err := server.Load([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir(), "--appendonly", "yes", "--appendfsync", "always"}, nil)
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		f := launch(t, c, l, disk, func() {})
		t.Cleanup(disk.release)

		killed, held, other := f.dial(), f.dial(), f.dial()
		id := killed.id()
		disk.hangs.Store(true)
		killed.command("CL.THROTTLE", "killed", "15", "30", "600")
		eventually(t, "an fsync hangs", func() bool { return disk.waiting.Load() > 0 })
		held.command("CL.THROTTLE", "held", "15", "30", "600")
		require.Equal(t, "+PONG\r\n", other.do("PING"))
		require.Equal(t, five(0, 16, 15, -1, 20), other.do("CL.THROTTLE", "killed", "15", "30", "600", "0"), "looking needs no disk")
		require.Equal(t, ":1\r\n", other.do("CLIENT", "KILL", "ID", id))
		killed.expectEnd()
		eventually(t, "the stall shows", func() bool { return other.info("aof_fsync_stalled_ms") != "0" })

		disk.hangs.Store(false)
		disk.release()
		require.Equal(t, five(0, 16, 15, -1, 20), held.reply())
		require.Equal(t, five(0, 16, 14, -1, 40), other.do("CL.THROTTLE", "killed", "15", "30", "600"))
	})
}

// crashed returns a copy of the directory of a server that runs, which is what a
// process that dies now leaves.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(left, "appendonlydir"), os.DirFS(filepath.Join(dir, "appendonlydir"))))
	return left
}

// after starts a server on what a crash has left, at an instant.
func after(t *testing.T, dir string, at limit.Instant) *fixture {
	t.Helper()
	c, err := server.Load([]string{"--transport", "goroutine", "--dir", dir, "--appendonly", "yes"}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, c, l, nil, clocktest.New(at), func() {})
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}

// TestCrashWhileBlocked: a caller that waits in BLOCK when the process dies has been
// charged nothing; one that was let in has been charged once.
func TestCrashWhileBlocked(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "goroutine", "--dir", dir, "--appendonly", "yes")
	c, waits := f.dial(), f.dial()
	call := []string{"SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"}
	look := []string{"SW.ALLOW", "k", "1", "60", "0", "FIXED", "ANCHOR", "FIRST"}
	require.Equal(t, five(0, 1, 0, -1, 60), c.do(call...))
	waits.command(append(call, "BLOCK", "0")...)
	eventually(t, "parked", func() bool { return c.info("blocked_clients") == "1" })
	before := crashed(t, dir)
	f.clock.Advance(time.Minute)
	require.Equal(t, five(0, 1, 0, -1, 60), waits.reply())
	let := crashed(t, dir)

	require.Equal(t, five(0, 1, 1, -1, 0), after(t, before, epoch.Add(time.Minute)).dial().do(look...))
	require.Equal(t, five(0, 1, 0, -1, 60), after(t, let, epoch.Add(time.Minute)).dial().do(look...))
}

// TestAutomaticRewrite: a log that has grown far enough beyond its base is replaced
// by a snapshot, as soon as the options say so and not before.
func TestAutomaticRewrite(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "goroutine", "--dir", dir, "--appendonly", "yes", "--auto-aof-rewrite-min-size", "1000")
	c := f.dial()
	require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "auto-aof-rewrite-percentage", "0"))
	for range 100 {
		c.do("CL.THROTTLE", "k", "1000", "30", "600")
	}
	require.Equal(t, "0", c.info("aof_base_size"))
	require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "auto-aof-rewrite-percentage", "100"))
	eventually(t, "rewritten", func() bool { return c.info("aof_base_size") != "0" })
	require.Equal(t, five(0, 1001, 900, -1, 2020), c.do("CL.THROTTLE", "k", "1000", "30", "600"))
	f.end()
	require.Equal(t, 1, strings.Count(f.log.String(), "snapshot written"))
	require.Equal(t, five(0, 1001, 900, -1, 2020), after(t, dir, epoch).dial().do("CL.THROTTLE", "k", "1000", "30", "600", "0"))
}

// TestSavePoints: a snapshot is written when a save point is reached, by the number
// of changes that it names; without a log it is all that a restart finds.
func TestSavePoints(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "goroutine", "--dir", dir, "--save", "3600 1 1 5")
	c := f.dial()
	for range 4 {
		c.do("CL.THROTTLE", "k", "15", "30", "600")
	}
	require.Equal(t, "4", c.info("rdb_changes_since_last_save"))
	c.do("CL.THROTTLE", "k", "15", "30", "600")
	eventually(t, "saved", func() bool { return c.info("rdb_changes_since_last_save") == "0" })
	left := crashed(t, dir)
	require.Equal(t, five(0, 16, 11, -1, 100), after(t, left, epoch).dial().do("CL.THROTTLE", "k", "15", "30", "600", "0"))
}
