package inproc

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
)

// Served is a running server with a socket of this machine, for tests that depend on the transport.
// Its clock moves only when the test moves it, unless [ServeTimed] has started the server.
type Served struct {
	*Server
	// Log collects what the server logs, for the test to examine.
	Log *LogBuffer

	tb    testing.TB
	done  chan error
	ended sync.Once
}

// EachTransport runs f as a subtest for every kind of transport that this machine has.
func EachTransport(t *testing.T, f func(t *testing.T, kind string)) {
	t.Helper()
	kinds := []string{"goroutine"}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, "epoll")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, kind) })
	}
}

// Serve runs a server with the given kind of transport until the end of the test. options are those
// of a command line.
func Serve(tb testing.TB, kind string, options ...string) *Served {
	tb.Helper()
	return ServeWith(tb, kind, nil, options...)
}

// ServeTimed does the same as Serve for a server with the machine's clock. It is for tests with
// other programs. When it returns, the server has loaded its state.
func ServeTimed(tb testing.TB, kind string, options ...string) *Served {
	tb.Helper()
	s := ServeWith(tb, kind, func(o *server.Options) { o.Clock = nil }, options...)
	s.Clock = nil
	Await(tb, "loaded", func() bool { return !s.Engine().Loading() })
	return s
}

// ServeAdmin does the same as Serve for a server with an admin port, and also returns the URL of
// that port.
func ServeAdmin(tb testing.TB, kind string, options ...string) (s *Served, url string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s = ServeWith(tb, kind, func(o *server.Options) { o.AdminListeners = []net.Listener{l} }, options...)
	return s, "http://" + l.Addr().String()
}

// ServeWith does the same as Serve. setup, unless it is nil, may change the options of the server.
func ServeWith(tb testing.TB, kind string, setup func(*server.Options), options ...string) *Served {
	tb.Helper()
	s := &Served{Log: &LogBuffer{}, tb: tb, done: make(chan error, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s.Server = newStepped(tb, l, s.Log, setup, append([]string{"--transport", kind, "--io-threads", "2", "--dir", tb.TempDir()}, options...))
	go func() { s.done <- s.Run(context.Background()) }()
	tb.Cleanup(s.End)
	return s
}

// Dial connects a client to the server through a socket.
func (s *Served) Dial() *Client {
	s.tb.Helper()
	return Dial(s.tb, "tcp", s.Addr().String())
}

// End stops the server and waits until it has ended. Only the first call has an effect.
func (s *Served) End() {
	s.ended.Do(func() {
		s.Stop()
		require.NoError(s.tb, <-s.done)
	})
}

// Await waits, outside of a [Bubble], until ok returns true. It fails the test with what if that
// takes longer than Patience.
func Await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	require.Eventually(tb, ok, Patience, time.Millisecond, what)
}
