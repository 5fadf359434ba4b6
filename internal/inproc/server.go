package inproc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// Server is a server in the process of the test. Clock is nil if the server has the machine's
// clock.
type Server struct {
	*server.Server
	Clock *clocktest.Clock
}

// New assembles a server that will serve clients on listeners when Run is called. Its clock stands
// at start until the test moves it. options are options of a command line, such as "--requirepass",
// "secret".
func New(start limit.Instant, listeners []net.Listener, options ...string) (*Server, error) {
	return newServer(clocktest.New(start), listeners, server.Options{}, options)
}

// newServer does the same as New. o has further options of the server. If clock is nil, the server
// has the clock in o, or the machine's.
func newServer(clock *clocktest.Clock, listeners []net.Listener, o server.Options, options []string) (*Server, error) {
	c, err := config.Load(options, nil)
	if err != nil {
		return nil, fmt.Errorf("reading options: %w", err)
	}
	o.Listeners, o.Log = listeners, slog.New(slog.DiscardHandler)
	if clock != nil { // if clock is nil, the server has the clock in o, or the machine's clock
		o.Clock = clock
	}
	s, err := server.New(c, o)
	if err != nil {
		return nil, fmt.Errorf("assembling a server: %w", err)
	}
	return &Server{Server: s, Clock: clock}, nil
}

// Start runs a server on a port of this machine until the end of the test. Its clock stands at
// start until the test moves it.
func Start(tb testing.TB, start limit.Instant, options ...string) *Server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s, err := New(start, []net.Listener{l}, options...)
	require.NoError(tb, err)
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = s.Run(context.Background()) })
	tb.Cleanup(func() {
		s.Stop()
		running.Wait()
		require.NoError(tb, failed)
	})
	return s
}

// Put sets key in database 0 to value with the given kind, even if no command of this server can
// store such a value. The key expires after ttl; if ttl is 0, it never does.
func (s *Server) Put(key string, kind entry.Kind, value string, ttl time.Duration) error {
	v := s.Keyspace().NewHandle()
	defer v.Close()
	expiry := entry.NoExpiry
	if ttl != 0 {
		expiry = v.Refresh().Add(ttl)
	}
	return v.Put(0, []byte(key), kind, []byte(value), expiry)
}
