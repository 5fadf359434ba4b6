package server_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// newServer assembles a server that opens its own listeners.
func newServer(t *testing.T, flags ...string) (*server.Server, error) {
	t.Helper()
	c, err := config.Load(flags, nil)
	require.NoError(t, err)
	return server.New(c, server.Options{Log: slog.New(slog.DiscardHandler)})
}

// run serves until stop is called.
func run(t *testing.T, s *server.Server) (stop func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	return func() {
		s.Stop()
		require.NoError(t, <-done)
	}
}

// TestListenFaults: an address that cannot be opened ends the start with an error that names it,
// and listeners that were opened before are closed.
func TestListenFaults(t *testing.T) {
	_, err := newServer(t, "--port", "0")
	require.ErrorContains(t, err, "nothing to listen on")
	for _, password := range []string{"", "x"} { // as in Redis, whose protected mode does not check this either
		_, err = newServer(t, "--port", "7000", "--bind", "", "--requirepass", password)
		require.ErrorContains(t, err, "nothing to listen on: bind is empty")
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const port = "7000"
		on := func(bind ...string) (*server.Server, error) {
			c, err := config.Load(slices.Concat([]string{"--transport", "goroutine", "--port", port, "--requirepass", "x", "--bind"}, bind), nil)
			require.NoError(t, err)
			return server.New(c, server.Options{Log: slog.New(slog.DiscardHandler), Listen: func(_, address string) (net.Listener, error) {
				if strings.HasPrefix(address, "192.0.2.") {
					return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRNOTAVAIL}
				}
				return w.Net.Listen(address)
			}})
		}
		taken, err := w.Net.Listen("127.0.0.1:" + port)
		require.NoError(t, err)
		_, err = on("127.0.0.1")
		require.ErrorContains(t, err, "listening on 127.0.0.1")
		require.NoError(t, taken.Close())

		_, err = on("127.0.0.1", "192.0.2.1")
		require.ErrorContains(t, err, "listening on 192.0.2.1")
		again, err := w.Net.Listen("127.0.0.1:" + port)
		require.NoError(t, err, "the port is free again")
		require.NoError(t, again.Close())

		_, err = on("-192.0.2.1")
		require.ErrorContains(t, err, "none of the addresses exists here")
		s, err := on("127.0.0.1", "-192.0.2.1")
		require.NoError(t, err)
		stop := run(t, s)
		c := dialPort(t, w, port)
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "x"))
		require.Equal(t, port, c.Info("tcp_port"))
		stop()
	})
}

// TestLogFile: the log is appended to a file, and a file that cannot be opened is an error.
func TestLogFile(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		path := filepath.Join(t.TempDir(), "log")
		for range 2 {
			c, err := config.Load([]string{"--transport", "goroutine", "--logfile", path}, nil)
			require.NoError(t, err)
			l, err := w.Net.Listen("127.0.0.1:0")
			require.NoError(t, err)
			s, err := server.New(c, server.Options{Listeners: []net.Listener{l}})
			require.NoError(t, err)
			run(t, s)()
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(content), "ready to accept connections"))
		require.Equal(t, 2, strings.Count(string(content), "msg=stopped"))
		c, err := config.Load([]string{"--logfile", filepath.Join(path, "no")}, nil)
		require.NoError(t, err)
		_, err = server.New(c, server.Options{})
		require.ErrorContains(t, err, "opening the log")
	})
}
