package inproc

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// Fed is a [Session] that ends with its test. It fails the test if the server closes the session.
type Fed struct {
	*Session
	tb testing.TB
	// leave ends the session. It is nil for a session of Open, which ends only with the test.
	leave func()
}

// Open does the same as [Feed] for a test. The clock of the server starts at [Epoch].
func Open(tb testing.TB, options ...string) *Fed {
	tb.Helper()
	s, err := Feed(Epoch, options...)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return &Fed{Session: s, tb: tb}
}

// OpenTimed does the same as Open for a server with the machine's clock, whose cost is that of
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

// Another opens another session of the same server, with a worker of its own.
func (f *Fed) Another() *Fed {
	f.tb.Helper()
	s, rejection := f.server.Open(loopback)
	require.NotNil(f.tb, s, "%s", rejection)
	leave := sync.OnceFunc(s.session.Closed)
	f.tb.Cleanup(leave)
	return &Fed{s, f.tb, leave}
}

// Leave ends a session that Another has opened, as if its client had disconnected.
func (f *Fed) Leave() { f.leave() }

// Beside opens another session of the same server, with the worker of f.
func (f *Fed) Beside() *Fed {
	f.tb.Helper()
	other := f.Another()
	other.worker = f.worker
	return other
}

// Do feeds a command and returns the reply. If the session parks, Do waits until it is woken.
func (f *Fed) Do(args ...string) string {
	f.tb.Helper()
	return string(f.Packet(Encode(nil, args...)))
}

// Packet feeds commands that arrive at once, and returns all replies, which are valid until the
// next call. If the session parks, Packet waits until it is woken.
func (f *Fed) Packet(in []byte) []byte {
	out, err := f.Send(in)
	if err != nil {
		f.tb.Helper()
		require.NoError(f.tb, err, "%q", out)
	}
	return out
}

// Turn feeds the session once, as a transport does, and returns the result, in which the output is
// appended to out.
func (f *Fed) Turn(in, out []byte) transport.Turn { return f.session.Feed(f.worker, in, out) }

// Woken waits until a parked or waiting session has been woken, and may be fed again.
func (f *Fed) Woken() { <-f.peer.wake }

// Rest waits until a parked session is woken, and returns its remaining replies.
func (f *Fed) Rest() string {
	f.tb.Helper()
	f.Woken()
	return string(f.Packet(nil))
}
