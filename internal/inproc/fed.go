package inproc

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// Fed is a [Session] that ends with its test, and fails it where the server closes the session.
type Fed struct {
	*Session
	tb testing.TB
	// leave ends a session that Another has opened.
	leave func()
}

// Open is [Feed] for a test. The clock of the server begins at [Epoch].
func Open(tb testing.TB, options ...string) *Fed {
	tb.Helper()
	s, err := Feed(Epoch, options...)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return &Fed{Session: s, tb: tb}
}

// OpenTimed is Open of a server with the clock of the machine, which costs what it costs in
// production.
func OpenTimed(tb testing.TB, options ...string) *Fed {
	tb.Helper()
	s, err := newServer(nil, []net.Listener{}, server.Options{}, append([]string{"--transport", "goroutine"}, options...))
	require.NoError(tb, err)
	f := (&Fed{Session: &Session{server: s}, tb: tb}).Another()
	tb.Cleanup(func() {
		s.Engine().Close()
		s.Keyspace().Close()
	})
	return f
}

// Another opens a further session of the same server, with a worker of its own.
func (f *Fed) Another() *Fed {
	f.tb.Helper()
	s, rejection := f.server.Open(loopback)
	require.NotNil(f.tb, s, "%s", rejection)
	leave := sync.OnceFunc(s.session.Closed)
	f.tb.Cleanup(leave)
	return &Fed{s, f.tb, leave}
}

// Leave ends a session that Another has opened, as if its client had hung up.
func (f *Fed) Leave() { f.leave() }

// Beside is Another with the worker of f.
func (f *Fed) Beside() *Fed {
	f.tb.Helper()
	other := f.Another()
	other.worker = f.worker
	return other
}

// Do hands in a command and returns the reply. It waits for what runs in the background.
func (f *Fed) Do(args ...string) string {
	f.tb.Helper()
	return string(f.Packet(Encode(nil, args...)))
}

// Packet hands in commands that arrive at once, and returns all replies. They are valid until
// the next call.
func (f *Fed) Packet(in []byte) []byte {
	out, err := f.Send(in)
	if err != nil {
		f.tb.Helper()
		require.NoError(f.tb, err, "%q", out)
	}
	return out
}

// Turn hands in once, as a transport does, and returns what the session says. The output that
// was collected so far goes on in out.
func (f *Fed) Turn(in, out []byte) transport.Turn { return f.session.Feed(f.worker, in, out) }

// Woken returns when a session that has parked or waits may be fed again.
func (f *Fed) Woken() { <-f.peer.wake }

// Rest returns the replies of a session that has parked, once it is woken.
func (f *Fed) Rest() string {
	f.tb.Helper()
	f.Woken()
	return string(f.Packet(nil))
}
