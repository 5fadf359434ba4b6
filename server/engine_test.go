package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// engine is a command layer that a test has put together itself, behind sockets: it
// knows its sessions, and its store may misbehave.
type engine struct {
	*session.Engine
	clock *clocktest.Clock
	ks    *keyspace.Keyspace
	log   *logBuffer
	addr  string
	t     testing.TB

	mu       sync.Mutex
	sessions []*session.Session // in the order they came
	fed      func(transport.Turn)
}

// watch has f told of every turn of the sessions that are opened from now on.
func (e *engine) watch(f func(transport.Turn)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fed = f
}

// watched is a session whose turns somebody is told of.
type watched struct {
	*session.Session
	fed func(transport.Turn)
}

// Feed implements transport.Session.
func (w watched) Feed(l transport.Worker, in, out []byte) transport.Turn {
	turn := w.Session.Feed(l, in, out)
	w.fed(turn)
	return turn
}

// startEngine serves an engine whose stores are passed through wrap.
func startEngine(t testing.TB, kind string, wrap func(env.Store) env.Store) *engine {
	t.Helper()
	return startEngineWith(t, kind, wrap, func(*env.Options) {})
}

// startEngineWith is startEngine with options that set changes.
func startEngineWith(t testing.TB, kind string, wrap func(env.Store) env.Store, set func(*env.Options)) *engine {
	t.Helper()
	e := &engine{clock: clocktest.New(epoch), log: &logBuffer{}, t: t}
	e.ks = keyspace.New(keyspace.Options{Clock: e.clock})
	began := time.Now()
	log := slog.New(slog.NewTextHandler(e.log, nil))
	o := env.Options{
		Ledger:    e.ks.Ledger(),
		NewStore:  func() env.Store { return wrap(server.NewStore(e.ks)) },
		Stopwatch: func() time.Duration { return time.Since(began) },
		Now:       e.clock.Now,
		Settings:  config.Default(),
		Log:       log,
	}
	set(&o)
	e.Engine = session.NewEngine(o, commands.NewTable())
	tr, err := transport.New(transport.Kind(kind), e, transport.DefaultLimits(), 2, log)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- tr.Serve(l) }()
	t.Cleanup(func() {
		e.Drain()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, tr.Shutdown(ctx))
		if err := <-served; !errors.Is(err, transport.ErrClosed) { // it need not have begun
			require.NoError(t, err)
		}
		e.Close()
	})
	return e
}

// Open implements transport.Handler: it remembers the session.
func (e *engine) Open(p transport.Peer) (transport.Session, []byte) {
	opened, rejection := e.Engine.Open(p)
	if s, ok := opened.(*session.Session); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sessions = append(e.sessions, s)
		if e.fed != nil {
			return watched{s, e.fed}, rejection
		}
	}
	return opened, rejection
}

func (e *engine) session(i int) *session.Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[i]
}

func (e *engine) dial() *client { return dial(e.t, "tcp", e.addr) }

// TestPushesComeBetweenReplies: what other goroutines say to a client arrives whole and
// between replies, also while it is parked.
func TestPushesComeBetweenReplies(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		e := startEngine(t, kind, func(st env.Store) env.Store { return st })
		c := e.dial()
		require.Equal(t, five(0, 1, 0, -1, 60), c.do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		session := e.session(0)
		const push = ">2\r\n+news\r\n:1\r\n"
		c.send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\nPING\r\n")
		eventually(t, "it waits", func() bool { return e.ks.Waiting() == 1 })
		e.Push(&session.Client, []byte(push))
		c.expect(push)
		e.clock.Advance(time.Minute)
		c.expect(five(0, 1, 0, -1, 60), "+PONG\r\n")

		const pushes = 500
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range pushes {
					e.Push(&session.Client, []byte(push))
				}
			})
		}
		all.Go(func() { c.send(strings.Repeat("ECHO 0123456789\r\n", 2000)) })
		seen, echoes := 0, 0
		for seen < 4*pushes || echoes < 2000 {
			switch got := c.reply(); got {
			case push:
				seen++
			case bulk("0123456789"):
				echoes++
			default:
				require.Fail(t, "neither a push nor a reply", "%q", got)
			}
		}
		all.Wait()
		require.Equal(t, "+PONG\r\n", c.do("PING"))
	})
}

// TestPushesBeyondAllBounds: a client that takes nothing is cut off before what others
// want to tell it fills the memory.
func TestPushesBeyondAllBounds(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		e := startEngine(t, kind, func(st env.Store) env.Store { return st })
		c := e.dial()
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		world := e.ks.World()
		require.True(t, world.Stop(nil))
		defer world.Start()
		push := []byte("+" + strings.Repeat("x", 1<<20) + "\r\n")
		for range 200 {
			e.Push(&e.session(0).Client, push)
		}
		_, err := c.r.ReadString('\x00') // nothing has one: this reads to the end
		require.Error(t, err)
		require.NotContains(t, err.Error(), "timeout")
	})
}

// faulty panics for keys that begin with "panic" once it is armed, the way a store with
// a bug would: inside deciding.
type faulty struct {
	env.Store
	// fuse is how many calls pass before one does not; all do with never, none with
	// always.
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
	f.Store.Decide(a)
}

func (f *faulty) Flush(int) { f.fail([]byte("panic")) }

const internalError = "-ERR internal error\r\n"

// TestPanicEndsOneClient: a bug that panics is answered with an error and costs one
// connection. Nobody else is harmed, no lock is left held, no key's waiters are stuck.
func TestPanicEndsOneClient(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		var fuse atomic.Int64
		e := startEngine(t, kind, func(st env.Store) env.Store { return &faulty{st, &fuse} })
		witness := e.dial()
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
			c := e.dial()
			c.send("PING\r\n" + packet + "PING\r\n")
			c.expect("+PONG\r\n")
			c.expect(before...)
			c.expect(internalError)
			c.expectEnd()
			e.requireSound(witness)
		}
		require.Equal(t, strconv.Itoa(len(packets)), witness.info("internal_errors"))
		require.NotContains(t, e.log.String(), "canary")
	})
}

// requireSound wants every lock to be free, as a transaction over all keys needs them,
// and nobody to wait.
func (e *engine) requireSound(witness *client) {
	e.t.Helper()
	witness.send("MULTI\r\nDBSIZE\r\nCL.THROTTLE other 9 1 1 0\r\nEXEC\r\n")
	witness.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
	require.Contains(e.t, witness.reply(), "*2\r\n:")
	eventually(e.t, "nobody waits", func() bool { return e.ks.Waiting() == 0 })
}

// TestPanicInTheBackgroundEndsOneClient: the same for what runs when a wait ends.
func TestPanicInTheBackgroundEndsOneClient(t *testing.T) {
	const block = "SW.ALLOW panic 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
	endings := map[string]func(e *engine, admin *client, id string){
		"its time comes": func(e *engine, _ *client, _ string) { e.clock.Advance(time.Minute) },
		"it is unblocked": func(_ *engine, admin *client, id string) {
			require.Equal(t, ":1\r\n", admin.do("CLIENT", "UNBLOCK", id))
		},
		"the server stops": func(e *engine, _ *client, _ string) { e.Drain() },
	}
	eachTransport(t, func(t *testing.T, kind string) {
		for name, end := range endings {
			var fuse atomic.Int64
			fuse.Store(never)
			e := startEngine(t, kind, func(st env.Store) env.Store { return &faulty{st, &fuse} })
			admin, window, bucket := e.dial(), e.dial(), e.dial()
			admin.send("SW.ALLOW panic 1 60 1 FIXED ANCHOR FIRST\r\nTB.ACQUIRE panic:b 1 1 60\r\n")
			admin.expect(five(0, 1, 0, -1, 60), five(0, 1, 0, -1, 60))
			ids := []string{window.id(), bucket.id()}
			window.send(block + "PING\r\n")
			bucket.send("TB.ACQUIRE panic:b 1 1 60 1 BLOCK 0\r\nPING\r\n")
			// Their timers run a moment before they can be unblocked.
			eventually(t, "both wait", func() bool { _, waits := e.CountClients(); return waits == 2 })
			fuse.Store(always)
			for i, c := range []*client{window, bucket} {
				end(e, admin, ids[i])
				c.expect(internalError)
				c.expectEnd()
			}
			e.requireSound(admin)
			require.Zero(t, e.clock.Timers(), name)
		}
	})
}

// TestPanicOfTheFirstWaiterLetsTheNextIn: whoever comes behind a client that was lost
// that way becomes the first.
func TestPanicOfTheFirstWaiterLetsTheNextIn(t *testing.T) {
	const block = "SW.ALLOW panic 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
	eachTransport(t, func(t *testing.T, kind string) {
		var fuse atomic.Int64
		fuse.Store(never)
		e := startEngine(t, kind, func(st env.Store) env.Store { return &faulty{st, &fuse} })
		admin, first, second := e.dial(), e.dial(), e.dial()
		require.Equal(t, five(0, 1, 0, -1, 60), admin.do("SW.ALLOW", "panic", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		first.send(block)
		eventually(t, "one waits", func() bool { return e.ks.Waiting() == 1 })
		second.send(block)
		eventually(t, "both wait", func() bool { return e.ks.Waiting() == 2 })
		fuse.Store(1) // looking passes, charging does not
		e.clock.Advance(time.Minute)
		first.expect(internalError)
		first.expectEnd()
		second.expect(five(0, 1, 0, -1, 60))
		e.requireSound(admin)
	})
}

// TestUnknownCommandIsNoLastCommand: CLIENT LIST names the command before it, be it of the
// same batch.
func TestUnknownCommandIsNoLastCommand(t *testing.T) {
	f := start(t, "auto")
	c, admin := f.dial(), f.dial()
	for _, unknown := range []string{"FOO\r\n", "CLIENT FOO\r\n"} {
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		c.send("SET key value\r\n" + unknown)
		c.expect("+OK\r\n")
		require.Contains(t, c.reply(), "ERR unknown")
		require.Contains(t, admin.do("CLIENT", "LIST"), "cmd=set")
	}
}
