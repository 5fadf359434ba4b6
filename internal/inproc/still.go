package inproc

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/server"
)

// Still is a server in a [Bubble] whose clock moves only when the test moves it, however much time
// passes in the bubble.
type Still struct {
	*Server
	world *World
	addr  string
}

// Still runs a server until the end of the test. Its clock stands at start. groups returns the
// server's groups of commands; nil is all groups.
func (w *World) Still(start limit.Instant, groups func() []command.Group, options ...string) *Still {
	w.t.Helper()
	return w.still(clocktest.New(start), server.Options{Groups: groups}, options)
}

// StillWithStore does the same as Still for a server with the option store. The returned double
// decides its asks.
func (w *World) StillWithStore(start limit.Instant, options ...string) (*Still, *remotedouble.Double) {
	w.t.Helper()
	clock := clocktest.New(start)
	double := newDouble(w.t, clock)
	open := func(remote.Options) (server.RemoteStore, error) { return double, nil }
	return w.still(clock, server.Options{OpenStore: open}, options), double
}

// newDouble returns a double of a remote store with the given clock.
func newDouble(tb testing.TB, clock *clocktest.Clock) *remotedouble.Double {
	ks := keyspace.New(keyspace.Options{Databases: 1, Clock: clock})
	tb.Cleanup(ks.Close)
	return remotedouble.New(ks, 1)
}

func (w *World) still(clock *clocktest.Clock, o server.Options, options []string) *Still {
	w.t.Helper()
	l, err := w.Net.Listen(net.JoinHostPort(w.Host(), "0"))
	require.NoError(w.t, err)
	o.Listen = func(_, address string) (net.Listener, error) { return w.Net.Listen(address) }
	s, err := newServer(clock, []net.Listener{l}, o, append([]string{"--transport", "goroutine"}, options...))
	require.NoError(w.t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	w.t.Cleanup(func() {
		s.Stop()
		require.NoError(w.t, <-done)
	})
	return &Still{Server: s, world: w, addr: l.Addr().String()}
}

// Target returns s as the target of a script whose keys of other types put creates.
func (s *Still) Target(put func(kind, key, value string, ttl time.Duration) error) script.Target {
	return script.Target{Dial: s.Connect, Clock: s.Clock, Settle: s.world.Settle, Put: put}
}

// Connect opens a connection to the server. The caller closes it.
func (s *Still) Connect() (net.Conn, error) {
	return s.DialContext(s.world.t.Context(), "tcp", s.addr)
}

// DialContext connects from a loopback host to address in the network of the bubble. Client
// libraries use it to reach the server at its [Still.Address].
func (s *Still) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	return s.world.Net.Dial(ctx, "127.0.0.1", address)
}

// Address returns the address of the server with its port.
func (s *Still) Address() string { return s.addr }
