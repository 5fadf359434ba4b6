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

// Stepped is a running server on a simulated network, outside of a [Bubble]. Its clock moves only
// when the test moves it. It is for tests that cannot run in a bubble, such as tests of a script
// that never waits and so keeps virtual time from passing.
type Stepped struct {
	*Server
	// Log is the log of the server.
	Log *LogBuffer

	tb    testing.TB
	net   *simnet.Network
	addr  string
	ended sync.Once
	done  chan error
}

// Step runs a server until the end of the test. options are options of a command line. When Step
// returns, the server has loaded its state. The clock stands at [Epoch] until the test moves it.
func Step(tb testing.TB, options ...string) *Stepped {
	tb.Helper()
	return StepWith(tb, nil, options...)
}

// StepWith does the same as Step. setup, unless it is nil, may change the options of the server.
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

// newStepped assembles a server that will serve clients on l and write its log to log. setup,
// unless it is nil, may change the options of the server. The clock stands at [Epoch] until the
// test moves it.
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

// Dial connects a client to the server.
func (s *Stepped) Dial() *Client {
	s.tb.Helper()
	conn, err := s.net.Dial(s.tb.Context(), "127.0.0.1", s.addr)
	require.NoError(s.tb, err)
	return NewClient(s.tb, conn)
}

// End stops the server and waits until it has ended. Only the first call has an effect.
func (s *Stepped) End() {
	s.ended.Do(func() {
		s.Stop()
		require.NoError(s.tb, <-s.done)
	})
}
