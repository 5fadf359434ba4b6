package transport_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/persistence"
	cellserver "github.com/cellserver/cellserver/server"
)

// hungFS is a disk whose fsyncs of files do not return while hangs is set. When falters is set, one
// write is slow, and later writes do not return either.
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
		<-time.After(20 * time.Millisecond) // a loop tolerates 5 ms
		f.fs.mute.Store(true)
	} else if f.fs.mute.Load() {
		f.fs.hang()
	}
	return f.File.Write(b)
}

// serveHung runs a server on a disk that can hang.
func serveHung(t *testing.T, kind, dir, appendfsync string) (*inproc.Served, *hungFS) {
	t.Helper()
	disk := &hungFS{gate: make(chan struct{})}
	f := inproc.ServeWith(t, kind, func(o *cellserver.Options) { o.FS = disk }, "--dir", dir, "--appendonly", "yes", "--appendfsync", appendfsync)
	t.Cleanup(disk.release)
	inproc.Await(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f, disk
}

// afterCrash returns a client of a server that starts from a copy of a directory, as if the process
// had died now.
func afterCrash(t *testing.T, dir string) *inproc.Client {
	t.Helper()
	left := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(left, "appendonlydir"), os.DirFS(filepath.Join(dir, "appendonlydir"))))
	f := inproc.Serve(t, "goroutine", "--dir", left, "--appendonly", "yes")
	inproc.Await(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f.Dial()
}

// TestKillBehindAHungDisk: while an fsync hangs, clients whose effect needs it get no reply, and
// other clients do. A client that is killed is closed at once, but its command has taken effect.
func TestKillBehindAHungDisk(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f, disk := serveHung(t, kind, t.TempDir(), "always")
		killed, held, other := f.Dial(), f.Dial(), f.Dial()
		id := killed.ID()
		disk.hangs.Store(true)
		killed.Command("CL.THROTTLE", "killed", "15", "30", "600")
		inproc.Await(t, "an fsync hangs", func() bool { return disk.waiting.Load() > 0 })
		held.Command("CL.THROTTLE", "held", "15", "30", "600")
		require.Equal(t, "+PONG\r\n", other.Do("PING"))
		require.Equal(t, inproc.Five(0, 16, 15, -1, 20), other.Do("CL.THROTTLE", "killed", "15", "30", "600", "0"), "looking needs no disk")
		require.Equal(t, ":1\r\n", other.Do("CLIENT", "KILL", "ID", id))
		killed.ExpectEnd()
		inproc.Await(t, "the stall shows", func() bool { return other.Info("aof_fsync_stalled_ms") != "0" })

		disk.hangs.Store(false)
		disk.release()
		require.Equal(t, inproc.Five(0, 16, 15, -1, 20), held.Reply())
		require.Equal(t, inproc.Five(0, 16, 14, -1, 40), other.Do("CL.THROTTLE", "killed", "15", "30", "600"))
	})
}

// TestNobodyWaitsForAHungWrite: after a slow write no loop waits for the next one. So while that
// write hangs, all clients get replies except those with an effect in it. These get theirs once it
// returns, and not before, and everything that was acknowledged is there after a crash.
func TestNobodyWaitsForAHungWrite(t *testing.T) {
	charged := inproc.Five(0, 16, 15, -1, 20)
	writes := []struct {
		packet  string
		replies []string
	}{
		{"CL.THROTTLE w0 15 30 600\r\n", []string{charged}},
		{"CL.THROTTLE w1 15 30 600\r\nPING\r\n", []string{charged, "+PONG\r\n"}},
		{string(inproc.Encode(nil, "EVAL", "return redis.call('CL.THROTTLE',KEYS[1],15,30,600)", "1", "w2")), []string{charged}},
		{"RL.MULTI 2 w3 w4 CL 15 30 600 CL 15 30 600\r\n", nil},
		{"SET s v\r\n", []string{"+OK\r\n"}},
		{"DEL first\r\n", []string{":1\r\n"}},
	}
	keys := []string{"EXISTS", "w0", "w1", "w2", "w3", "w4", "s"}
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		dir := t.TempDir()
		f, disk := serveHung(t, kind, dir, "everysec")
		others := []*inproc.Client{f.Dial(), f.Dial(), f.Dial(), f.Dial()} // on both loops
		disk.falters.Store(true)
		require.Equal(t, charged, others[0].Do("CL.THROTTLE", "first", "15", "30", "600"))

		type answer struct {
			text  string
			early bool
			err   error
		}
		answers := make([]chan answer, len(writes))
		for i, w := range writes {
			c := f.Dial()
			c.Send(w.packet)
			answers[i] = make(chan answer, 2)
			go func() {
				for range max(1, len(w.replies)) {
					text, err := inproc.ReadReply(c.R)
					answers[i] <- answer{text, !disk.released.Load(), err}
				}
			}()
		}
		inproc.Await(t, "all have happened and a write hangs", func() bool {
			return disk.waiting.Load() > 0 && others[0].Do(keys...) == ":6\r\n" && others[1].Do("EXISTS", "first") == ":0\r\n"
		})
		for _, c := range others {
			require.Equal(t, "+PONG\r\n", c.Do("PING"))
			require.Equal(t, inproc.Bulk("v"), c.Do("GET", "s"))
			require.Equal(t, charged, c.Do("CL.THROTTLE", "w0", "15", "30", "600", "0"))
			require.Equal(t, "1", c.Info("aof_enabled"))
		}
		before := afterCrash(t, dir)
		require.Equal(t, charged, before.Do("CL.THROTTLE", "first", "15", "30", "600", "0"))
		require.Equal(t, ":0\r\n", before.Do(keys...))

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
		left := afterCrash(t, dir)
		require.Equal(t, ":6\r\n", left.Do(keys...))
		require.Equal(t, ":6\r\n", left.Do("DBSIZE"))
		require.Equal(t, charged, left.Do("CL.THROTTLE", "w0", "15", "30", "600", "0"))
		require.Equal(t, inproc.Five(0, 16, 14, -1, 40), others[0].Do("CL.THROTTLE", "w0", "15", "30", "600"))
	})
}
