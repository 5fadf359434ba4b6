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

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// hungFS is a disk whose fsyncs of files do not return while it hangs. Once it falters,
// one write is slow and those that follow do not return either.
type hungFS struct {
	persistence.OS
	hangs    atomic.Bool
	falters  atomic.Bool
	mute     atomic.Bool // writes hang
	waiting  atomic.Int64
	released atomic.Bool
	gate     chan struct{}
	once     sync.Once
}

func (h *hungFS) release() {
	h.once.Do(func() {
		h.released.Store(true)
		close(h.gate)
	})
}

func (h *hungFS) hang() {
	h.waiting.Add(1)
	<-h.gate
}

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
		f.fs.hang()
	}
	return f.File.Sync()
}

// Write implements persistence.File.
func (f hungFile) Write(b []byte) (int, error) {
	if f.fs.falters.CompareAndSwap(true, false) {
		<-time.After(20 * time.Millisecond) // a loop puts up with 5
		f.fs.mute.Store(true)
	} else if f.fs.mute.Load() {
		f.fs.hang()
	}
	return f.File.Write(b)
}

// startHung starts a server on a disk that can hang.
func startHung(t *testing.T, kind, dir, appendfsync string) (*fixture, *hungFS) {
	t.Helper()
	disk := &hungFS{gate: make(chan struct{})}
	f := startOnDisk(t, kind, disk, func() {}, "--dir", dir, "--appendonly", "yes", "--appendfsync", appendfsync)
	t.Cleanup(disk.release)
	return f, disk
}

// TestKillBehindAHungDisk: while an fsync hangs, nobody is answered whose effect has
// to pass it, everybody else is, and a client that is killed goes at once. What it
// did has happened all the same.
func TestKillBehindAHungDisk(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, disk := startHung(t, kind, t.TempDir(), "always")
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

// TestNobodyWaitsForAHungWrite: after a write that was slow no loop waits for the next,
// so while that hangs everybody is answered but those who have left an effect. They are
// once it returns, and not before, and what was answered is there after a crash.
func TestNobodyWaitsForAHungWrite(t *testing.T) {
	charged := five(0, 16, 15, -1, 20)
	writes := []struct {
		packet  string
		replies []string
	}{
		{"CL.THROTTLE w0 15 30 600\r\n", []string{charged}},
		{"CL.THROTTLE w1 15 30 600\r\nPING\r\n", []string{charged, "+PONG\r\n"}},
		{string(frame("EVAL", "return redis.call('CL.THROTTLE',KEYS[1],15,30,600)", "1", "w2")), []string{charged}},
		{"RL.MULTI 2 w3 w4 CL 15 30 600 CL 15 30 600\r\n", nil},
		{"SET s v\r\n", []string{"+OK\r\n"}},
		{"DEL first\r\n", []string{":1\r\n"}},
	}
	keys := []string{"EXISTS", "w0", "w1", "w2", "w3", "w4", "s"}
	eachTransport(t, func(t *testing.T, kind string) {
		dir := t.TempDir()
		f, disk := startHung(t, kind, dir, "everysec")
		others := []*client{f.dial(), f.dial(), f.dial(), f.dial()} // of both loops
		disk.falters.Store(true)
		require.Equal(t, charged, others[0].do("CL.THROTTLE", "first", "15", "30", "600"))

		type answer struct {
			text  string
			early bool
			err   error
		}
		answers := make([]chan answer, len(writes))
		for i, w := range writes {
			c := f.dial()
			c.send(w.packet)
			answers[i] = make(chan answer, 2)
			go func() {
				for range max(1, len(w.replies)) {
					text, err := readReply(c.r)
					answers[i] <- answer{text, !disk.released.Load(), err}
				}
			}()
		}
		eventually(t, "all have happened and a write hangs", func() bool {
			return disk.waiting.Load() > 0 && others[0].do(keys...) == ":6\r\n" && others[1].do("EXISTS", "first") == ":0\r\n"
		})
		for _, c := range others {
			require.Equal(t, "+PONG\r\n", c.do("PING"))
			require.Equal(t, bulk("v"), c.do("GET", "s"))
			require.Equal(t, charged, c.do("CL.THROTTLE", "w0", "15", "30", "600", "0"))
			require.Equal(t, "1", c.info("aof_enabled"))
		}
		before := after(t, crashed(t, dir), epoch).dial()
		require.Equal(t, charged, before.do("CL.THROTTLE", "first", "15", "30", "600", "0"))
		require.Equal(t, ":0\r\n", before.do(keys...))

		disk.release()
		for i, w := range writes {
			for n := range max(1, len(w.replies)) {
				got := <-answers[i]
				require.NoError(t, got.err)
				require.False(t, got.early, "%q was answered while nothing was written", w.packet)
				if w.replies != nil {
					require.Equal(t, w.replies[n], got.text)
				}
			}
		}
		left := after(t, crashed(t, dir), epoch).dial()
		require.Equal(t, ":6\r\n", left.do(keys...))
		require.Equal(t, ":6\r\n", left.do("DBSIZE"))
		require.Equal(t, charged, left.do("CL.THROTTLE", "w0", "15", "30", "600", "0"))
		require.Equal(t, five(0, 16, 14, -1, 40), others[0].do("CL.THROTTLE", "w0", "15", "30", "600"))
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
	c, err := config.Load([]string{"--transport", "goroutine", "--dir", dir, "--appendonly", "yes"}, nil)
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
