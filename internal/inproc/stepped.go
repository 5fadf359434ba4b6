package inproc

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// Stepped is a whole server on a simulated network, outside of a [Bubble]: its clock moves only
// when the test moves it. It is for tests that a bubble cannot run, such as with a script that
// never waits and so keeps virtual time from passing.
type Stepped struct {
	*Server
	// Log is the server's log.
	Log *LogBuffer

	tb    testing.TB
	net   *simnet.Network
	addr  string
	ended sync.Once
	done  chan error
}

// Step runs a server with options as on the command line until the test ends. When it returns the
// server has loaded its state. The clock starts at [Epoch].
func Step(tb testing.TB, options ...string) *Stepped {
	tb.Helper()
	return StepWith(tb, nil, options...)
}

// StepWith is Step with options of the server that setup changes, unless it is nil.
func StepWith(tb testing.TB, setup func(*server.Options), options ...string) *Stepped {
	tb.Helper()
	s := &Stepped{
		Log: &LogBuffer{}, tb: tb, net: simnet.New(), done: make(chan error, 1),
	}
	l, err := s.net.Listen("127.0.0.1:0")
	require.NoError(tb, err)
	s.addr = l.Addr().String()
	s.Server = newStepped(tb, l, s.Log, setup, append([]string{"--transport", "goroutine"}, options...))
	go func() { s.done <- s.Run(context.Background()) }()
	tb.Cleanup(s.End)
	for s.Engine().Loading() {
		runtime.Gosched()
	}
	return s
}

// newStepped assembles a server that serves l and logs to log, with options that setup changes,
// unless it is nil. Its clock starts at [Epoch] and moves when the test moves it.
func newStepped(tb testing.TB, l net.Listener, log *LogBuffer, setup func(*server.Options), options []string) *Server {
	tb.Helper()
	s := &Server{Clock: clocktest.New(Epoch)}
	c, err := config.Load(options, nil)
	require.NoError(tb, err)
	o := server.Options{
		Clock: s.Clock, Listeners: []net.Listener{l},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if setup != nil {
		setup(&o)
	}
	s.Server, err = server.New(c, o)
	require.NoError(tb, err)
	return s
}

// Dial connects a client.
func (s *Stepped) Dial() *Client {
	s.tb.Helper()
	conn, err := s.net.Dial(s.tb.Context(), "127.0.0.1", s.addr)
	require.NoError(s.tb, err)
	return NewClient(s.tb, conn)
}

// End stops the server and returns after Run has returned.
func (s *Stepped) End() {
	s.ended.Do(func() {
		s.Stop()
		require.NoError(s.tb, <-s.done)
	})
}
