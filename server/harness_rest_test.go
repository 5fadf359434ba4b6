package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// A window of one unit a minute that starts with its first hit: whoever comes second
// waits for the end of the minute.
const (
	takeWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n"
	waitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
)

// fill uses the window up.
func (f *fixture) fill(c *client) {
	f.t.Helper()
	c.send(takeWindow)
	c.expect(five(0, 1, 0, -1, 60))
}

// queue has n clients wait for the window, one behind the other.
func (f *fixture) queue(n int, command string) []*client {
	f.t.Helper()
	before := f.Keyspace().Waiting()
	conns := make([]*client, n)
	for i := range conns {
		conns[i] = f.dial()
		conns[i].send(command)
		eventually(f.t, "it waits", func() bool { return f.Keyspace().Waiting() == before+i+1 })
	}
	return conns
}

// silent wants nobody of conns to have been answered. It gives the server no time: what
// could have happened has been waited for by the caller.
func silent(t *testing.T, conns ...*client) {
	t.Helper()
	for i, c := range conns {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Millisecond)))
		_, err := c.r.Peek(1)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout, "client %d was answered", i)
		require.True(t, timeout.Timeout(), "client %d is gone", i)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	}
}

// listen returns a client of a protocol that has subscribed to the channels.
func (f *fixture) listen(proto string, channels ...string) *client {
	c := f.dial()
	c.do("HELLO", proto)
	c.command(append([]string{"SUBSCRIBE"}, channels...)...)
	for range channels {
		require.Contains(f.t, c.reply(), "subscribe")
	}
	return c
}

// told encodes the message that a client of a protocol gets.
func told(proto, channel, body string) string {
	m := array(bulk("message"), bulk(channel), bulk(body))
	if proto == "3" {
		return ">" + m[1:]
	}
	return m
}

// invalidated is the push that a tracking client is sent for one key.
func invalidated(key string) string {
	return ">2\r\n" + bulk("invalidate") + array(bulk(key))
}

// tracker is a RESP3 client that tracks with the given options.
func (f *fixture) tracker(options ...string) *client {
	f.t.Helper()
	c := f.dial()
	require.Contains(f.t, c.do("HELLO", "3"), "%7")
	require.Equal(f.t, okReply, c.do(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...))
	return c
}

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

// errorstats returns INFO errorstats by word.
func (c *client) errorstats() map[string]string {
	c.t.Helper()
	counts := map[string]string{}
	for _, line := range strings.Split(c.do("INFO", "errorstats"), "\r\n") {
		if word, ok := strings.CutPrefix(line, "errorstat_"); ok {
			word, count, _ := strings.Cut(word, ":count=")
			counts[word] = count
		}
	}
	return counts
}

const (
	noAuth    = "-NOAUTH Authentication required.\r\n"
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
)

func replicate(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// fakePeer is a connection from wherever the test says.
type fakePeer struct {
	quietPeer
	remote net.Addr
}

func (p fakePeer) RemoteAddr() net.Addr { return p.remote }

// asApp gives the user app rules, and returns a client of it.
func (f *fixture) asApp(admin *client, rules ...string) *client {
	f.t.Helper()
	c := f.dial()
	require.Equal(f.t, okReply, admin.do(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">p"}, rules...)...))
	require.Equal(f.t, okReply, c.do("AUTH", "app", "p"))
	return c
}

// late is what the stores of goroutines in the background have in common, which get in late.
type late struct {
	came, enter, left chan struct{}
	letIn             func() // closes enter, once
}

// lateStore is one of them. There may be several at once.
type lateStore struct {
	env.Store
	*late
}

func (s lateStore) Enter() bool {
	tell(s.came)
	<-s.enter
	return s.Store.Enter()
}

func (s lateStore) Leave() {
	s.Store.Leave()
	tell(s.left)
}

// tell tells whoever listens, once.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// startLate starts an engine with one worker, beside which everything gets in late.
func startLate(t *testing.T) (e *engine, worker transport.Worker, all *late) {
	all = &late{came: make(chan struct{}, 1), enter: make(chan struct{}), left: make(chan struct{}, 1)}
	all.letIn = sync.OnceFunc(func() { close(all.enter) })
	loops := true // whose stores are made
	e = startEngine(t, transports()[0], func(st env.Store) env.Store {
		if loops {
			return st
		}
		return lateStore{st, all}
	})
	t.Cleanup(all.letIn) // before the engine waits for what is beside it
	worker = e.NewWorker()
	loops = false
	return e, worker, all
}
