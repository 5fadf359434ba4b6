package server_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// TestReadyzSaysMisconfWhileChangesAreRefused: /readyz and the metrics show it.
func TestReadyzSaysMisconfWhileChangesAreRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--appendonly", "yes")
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "k", "1"))
		require.Equal(t, "1", o.Series()["cellserver_persistence_ok"])
		o.Disk.Inject(func(_ int, call faultfs.Call) error {
			if call.Op == "write" {
				return syscall.ENOSPC
			}
			return nil
		})
		require.Contains(t, c.Do("SET", "k", "2"), "-MISCONF")
		status, body := o.Get("/readyz", "", "")
		require.Equal(t, 503, status)
		require.Equal(t, "misconf\n", body)
		status, _ = o.Get("/healthz", "", "")
		require.Equal(t, 200, status, "a restart would not help")
		require.Equal(t, "0", o.Series()["cellserver_persistence_ok"])
		o.Disk.Inject(nil)
		w.Until("it has recovered", time.Second, time.Minute, func() bool { return c.Do("SET", "k", "3") == inproc.OK })
		status, body = o.Get("/readyz", "", "")
		require.Equal(t, 200, status, body)
	})
}

// stuckFS is a disk on which fsyncs return only after its gate, if it has one, was closed.
type stuckFS struct {
	persistence.FS
	gate atomic.Pointer[chan struct{}]
}

type stuckFile struct {
	persistence.File
	disk *stuckFS
}

func (d *stuckFS) Create(name string) (persistence.File, error) {
	f, err := d.FS.Create(name)
	return stuckFile{f, d}, err
}

func (d *stuckFS) Append(name string) (persistence.File, error) {
	f, err := d.FS.Append(name)
	return stuckFile{f, d}, err
}

func (f stuckFile) Sync() error {
	if gate := f.disk.gate.Load(); gate != nil {
		<-*gate
	}
	return f.File.Sync()
}

// TestSyncAgeGrowsWhileAnFsyncHangs: in the metrics, and in the check of the report.
func TestSyncAgeGrowsWhileAnFsyncHangs(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		disk := &stuckFS{FS: faultfs.New()}
		o := w.StartAdminWith(func(o *server.Options) { o.FS = disk }, "--appendonly", "yes", "--appendfsync", "everysec")
		c := o.Dial()
		age := func() float64 {
			seconds, err := strconv.ParseFloat(o.Series()["cellserver_sync_age_seconds"], 64)
			require.NoError(t, err)
			return seconds
		}
		require.Zero(t, age())
		gate := make(chan struct{})
		disk.gate.Store(&gate)
		require.Equal(t, ":1\r\n", c.Do("INCR", "k"))
		w.Advance(3 * time.Second)
		require.InDelta(t, 3, age(), 1)
		w.Advance(5 * time.Second)
		require.InDelta(t, 8, age(), 1)
		disk.gate.Store(nil)
		close(gate)
		w.Advance(2 * time.Second)
		require.Zero(t, age())
	})
}

// TestReadyzSaysBusyWhileAScriptHoldsEverything: once a script has blocked the store for a second,
// or other clients get BUSY errors.
func TestReadyzSaysBusyWhileAScriptHoldsEverything(t *testing.T) {
	s, get := inproc.StepAdmin(t, "--busy-reply-threshold", "500")
	c, other := s.Dial(), s.Dial()
	c.Command("EVAL", "while true do end", "0")
	s.Clock.AwaitTimers(1)
	s.Clock.Advance(time.Second)
	status, body := get("/readyz")
	require.Equal(t, 503, status)
	require.Equal(t, "busy\n", body)
	status, _ = get("/healthz")
	require.Equal(t, 200, status, "a restart would not help")
	require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
	require.Contains(t, c.Reply(), "-ERR")
	require.Equal(t, ":0\r\n", other.Do("EXISTS", "k"))
	status, body = get("/readyz")
	require.Equal(t, 200, status, body)

	require.False(t, server.HoldsLong(session.Running{For: time.Second - 1}))
	require.True(t, server.HoldsLong(session.Running{For: time.Second}), "others may get -BUSY later, or never")
}

// silentLoops is a transport whose event loops do not answer.
type silentLoops struct{ transport.Transport }

func (silentLoops) Answer(context.Context) error { return errors.New("an event loop does not answer") }

// TestReadyzSaysStalledWhileALoopStandsStill: /readyz reports an event loop that does not answer.
func TestReadyzSaysStalledWhileALoopStandsStill(t *testing.T) {
	s, err := inproc.Feed(inproc.Epoch)
	require.NoError(t, err)
	defer s.Close()
	require.Empty(t, s.Server().NotReady(t.Context(), nil))
	require.Equal(t, "stalled", s.Server().NotReady(t.Context(), silentLoops{}))
}
