package session_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// faulty panics for keys that begin with "panic" when it is armed, as a store with a bug would:
// while it decides.
type faulty struct {
	env.Local
	// fuse is how many calls pass before one panics; never lets all pass, always none.
	fuse *atomic.Int64
}

const (
	never  = -1
	always = -2
)

func (f *faulty) fail(key []byte) {
	if !strings.HasPrefix(string(key), "panic") {
		return
	}
	if n := f.fuse.Load(); n == always || n >= 0 && f.fuse.Add(-1) < 0 {
		panic("canary: a bug in the store")
	}
}

func (f *faulty) Decide(a *decide.Ask) {
	f.fail(a.Key)
	f.Local.Decide(a)
}

func (f *faulty) Flush(int) { f.fail([]byte("panic")) }

const internalError = "-ERR internal error\r\n"

// startFaulty starts a server whose store panics according to fuse.
func startFaulty(w *inproc.World, fuse *atomic.Int64) (*inproc.Node, *inproc.Timers) {
	return w.StartTimedWith(func(o *server.Options) {
		o.WrapStore = func(st env.Local) env.Local { return &faulty{st, fuse} }
	})
}

// TestPanicEndsOneClient: a panic is answered with an error and closes one connection. No other
// client is affected, no lock stays locked, and no waiter is stuck.
func TestPanicEndsOneClient(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		var fuse atomic.Int64
		e, _ := startFaulty(w, &fuse)
		witness := e.Dial()
		packets := map[string][]string{
			"CL.THROTTLE panic 1 1 1\r\n":           nil,
			"SW.ALLOW panic 1 60 1 BLOCK 0\r\n":     nil,
			"TB.ACQUIRE panic 1 60 1 1 BLOCK 0\r\n": nil,
			"FLUSHDB\r\n":                           nil,
			"MULTI\r\nCL.THROTTLE a 1 1 1\r\nCL.THROTTLE panic 1 1 1\r\nEXEC\r\n": {"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n"},
			"MULTI\r\nKEYS *\r\nFLUSHDB\r\nEXEC\r\n":                              {"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n"},
			"WATCH a\r\nMULTI\r\nTB.ACQUIRE panic 1 1 1\r\nEXEC\r\n":              {"+OK\r\n", "+OK\r\n", "+QUEUED\r\n"},
		}
		for packet, before := range packets {
			fuse.Store(always)
			c := e.Dial()
			c.Send("PING\r\n" + packet + "PING\r\n")
			c.Expect("+PONG\r\n")
			c.Expect(before...)
			c.Expect(internalError)
			c.ExpectEnd()
			requireSound(t, w, e, witness)
		}
		require.Equal(t, strconv.Itoa(len(packets)), witness.Info("internal_errors"))
		require.NotContains(t, e.Log.String(), "canary")
	})
}

// requireSound requires every lock to be free, as a transaction over all keys needs them, and no
// client to wait.
func requireSound(t *testing.T, w *inproc.World, e *inproc.Node, witness *inproc.Client) {
	t.Helper()
	witness.Send("MULTI\r\nDBSIZE\r\nCL.THROTTLE other 9 1 1 0\r\nEXEC\r\n")
	witness.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
	require.Contains(t, witness.Reply(), "*2\r\n:")
	w.Settle()
	require.Zero(t, e.Keyspace().Waiting())
}

// TestPanicInTheBackgroundEndsOneClient: the same for code that runs when a wait ends.
func TestPanicInTheBackgroundEndsOneClient(t *testing.T) {
	const block = "SW.ALLOW panic 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
	endings := map[string]func(w *inproc.World, e *inproc.Node, admin *inproc.Client, id string){
		"its time comes": func(w *inproc.World, _ *inproc.Node, _ *inproc.Client, _ string) { w.Advance(time.Minute) },
		"it is unblocked": func(_ *inproc.World, _ *inproc.Node, admin *inproc.Client, id string) {
			require.Equal(t, ":1\r\n", admin.Do("CLIENT", "UNBLOCK", id))
		},
		"the server stops": func(_ *inproc.World, e *inproc.Node, _ *inproc.Client, _ string) { e.Engine().Drain() },
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for name, end := range endings {
			var fuse atomic.Int64
			fuse.Store(never)
			e, clock := startFaulty(w, &fuse)
			admin, window, bucket := e.Dial(), e.Dial(), e.Dial()
			admin.Send("SW.ALLOW panic 1 60 1 FIXED ANCHOR FIRST\r\nTB.ACQUIRE panic:b 1 1 60\r\n")
			admin.Expect(inproc.Five(0, 1, 0, -1, 60), inproc.Five(0, 1, 0, -1, 60))
			ids := []string{window.ID(), bucket.ID()}
			window.Send(block + "PING\r\n")
			bucket.Send("TB.ACQUIRE panic:b 1 1 60 1 BLOCK 0\r\nPING\r\n")
			// The timers run a moment before the waits can be ended.
			w.Settle()
			_, waits := e.Engine().CountClients()
			require.EqualValues(t, 2, waits)
			fuse.Store(always)
			for i, c := range []*inproc.Client{window, bucket} {
				end(w, e, admin, ids[i])
				c.Expect(internalError)
				c.ExpectEnd()
			}
			requireSound(t, w, e, admin)
			require.Zero(t, clock.Timers(), name)
		}
	})
}

// TestPanicOfTheFirstWaiterLetsTheNextIn: if the first waiter is lost by a panic, the next one
// becomes the first.
func TestPanicOfTheFirstWaiterLetsTheNextIn(t *testing.T) {
	const block = "SW.ALLOW panic 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		var fuse atomic.Int64
		fuse.Store(never)
		e, _ := startFaulty(w, &fuse)
		admin, first, second := e.Dial(), e.Dial(), e.Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Do("SW.ALLOW", "panic", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		first.Send(block)
		w.Settle()
		require.Equal(t, 1, e.Keyspace().Waiting())
		second.Send(block)
		w.Settle()
		require.Equal(t, 2, e.Keyspace().Waiting())
		fuse.Store(1) // the check passes, the charge does not
		w.Advance(time.Minute)
		first.Expect(internalError)
		first.ExpectEnd()
		second.Expect(inproc.Five(0, 1, 0, -1, 60))
		requireSound(t, w, e, admin)
	})
}
