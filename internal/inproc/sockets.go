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

// Served is a whole server behind a socket of this machine, for what depends on the transport.
// Its clock moves only when the test moves it, unless it is one of [ServeTimed].
type Served struct {
	*Server
	// Log is what the server has logged.
	Log *LogBuffer

	tb    testing.TB
	done  chan error
	ended sync.Once
}

// EachTransport runs f for every kind of transport that the machine has.
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

// Serve runs a server of a kind of transport, with options as on the command line, until the test
// ends.
func Serve(tb testing.TB, kind string, options ...string) *Served {
	tb.Helper()
	return ServeWith(tb, kind, nil, options...)
}

// ServeTimed is Serve of a server with the clock of the machine, for what happens beside programs of
// others. It has loaded what there is to be loaded.
func ServeTimed(tb testing.TB, kind string, options ...string) *Served {
	tb.Helper()
	s := ServeWith(tb, kind, func(o *server.Options) { o.Clock = nil }, options...)
	s.Clock = nil
	Await(tb, "loaded", func() bool { return !s.Engine().Loading() })
	return s
}

// ServeAdmin is Serve of a server with an admin port, whose URL is returned.
func ServeAdmin(tb testing.TB, kind string, options ...string) (s *Served, url string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s = ServeWith(tb, kind, func(o *server.Options) { o.AdminListeners = []net.Listener{l} }, options...)
	return s, "http://" + l.Addr().String()
}

// ServeWith is Serve with what setup, unless it is nil, changes of the server's options.
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

// Dial connects a client with a socket.
func (s *Served) Dial() *Client {
	s.tb.Helper()
	return Dial(s.tb, "tcp", s.Addr().String())
}

// End stops the server and returns when Run has.
func (s *Served) End() {
	s.ended.Do(func() {
		s.Stop()
		require.NoError(s.tb, <-s.done)
	})
}

// Await waits, outside of a [Bubble], until ok says that something has happened that must happen.
func Await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	require.Eventually(tb, ok, Patience, time.Millisecond, what)
}
