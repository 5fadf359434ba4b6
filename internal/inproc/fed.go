package inproc

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// Fed is a [Session] that ends with its test, and fails the test if the server closes the session.
type Fed struct {
	*Session
	tb testing.TB
	// leave ends a session of Another.
	leave func()
}

// Open is [Feed] for a test. The server's clock starts at [Epoch].
func Open(tb testing.TB, options ...string) *Fed {
	tb.Helper()
	s, err := Feed(Epoch, options...)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return &Fed{Session: s, tb: tb}
}

// OpenTimed is Open for a server with the machine's clock, which has the same cost as in
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

// Another opens another session of the same server, with its own worker.
func (f *Fed) Another() *Fed {
	f.tb.Helper()
	s, rejection := f.server.Open(loopback)
	require.NotNil(f.tb, s, "%s", rejection)
	leave := sync.OnceFunc(s.session.Closed)
	f.tb.Cleanup(leave)
	return &Fed{s, f.tb, leave}
}

// Leave ends a session of Another as if its client had disconnected.
func (f *Fed) Leave() { f.leave() }

// Beside is Another with the worker of f.
func (f *Fed) Beside() *Fed {
	f.tb.Helper()
	other := f.Another()
	other.worker = f.worker
	return other
}

// Do feeds a command and returns the reply. It waits for work in the background.
func (f *Fed) Do(args ...string) string {
	f.tb.Helper()
	return string(f.Packet(Encode(nil, args...)))
}

// Packet feeds commands that arrive at once, and returns all replies. They are valid until the next
// call.
func (f *Fed) Packet(in []byte) []byte {
	out, err := f.Send(in)
	if err != nil {
		f.tb.Helper()
		require.NoError(f.tb, err, "%q", out)
	}
	return out
}

// Turn feeds the session once, as a transport does, and returns the result. The output is appended
// to out.
func (f *Fed) Turn(in, out []byte) transport.Turn { return f.session.Feed(f.worker, in, out) }

// Woken returns when a parked or waiting session may be fed again.
func (f *Fed) Woken() { <-f.peer.wake }

// Rest waits until a parked session is woken, and returns its replies.
func (f *Fed) Rest() string {
	f.tb.Helper()
	f.Woken()
	return string(f.Packet(nil))
}
