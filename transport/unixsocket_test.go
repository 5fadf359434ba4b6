package transport_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	serving "github.com/cellserver/cellserver/server"
)

// newServer returns a whole server that opens its own listeners.
func newServer(flags ...string) (*serving.Server, error) {
	c, err := config.Load(flags, nil)
	if err != nil {
		return nil, err
	}
	return serving.New(c, serving.Options{Log: slog.New(slog.DiscardHandler)})
}

// runServer serves until stop is called.
func runServer(t *testing.T, s *serving.Server) (stop func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	return func() {
		s.Stop()
		require.NoError(t, <-done)
	}
}

// shortPath returns a path that is short enough for a unix socket, whatever the temporary directory
// is.
func shortPath(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("permissions of sockets are those of unix")
	}
	dir, err := os.MkdirTemp("", "cell")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "s")
}

// TestUnixSocket: the server listens only on a unix socket, with the requested permissions, and
// removes the socket when it stops.
func TestUnixSocket(t *testing.T) {
	for kind := range transportsOf(t) {
		for text, perm := range map[string]os.FileMode{"700": 0o700, "0": 0, "770": 0o770, "600": 0o600, "777": 0o777} {
			path := shortPath(t)
			s, err := newServer("--port", "0", "--unixsocket", path, "--unixsocketperm", text, "--transport", kind)
			require.NoError(t, err)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, perm, info.Mode().Perm())
			stop := runServer(t, s)
			if perm&0o200 != 0 || os.Getuid() == 0 {
				c := inproc.Dial(t, "unix", path)
				require.Equal(t, "+PONG\r\n", c.Do("PING"))
				line := c.Do("CLIENT", "INFO")
				require.Contains(t, line, " addr="+path+":0 ")
				require.Contains(t, line, " laddr="+path+":0 ")
				require.Equal(t, "0", c.Info("tcp_port"))
				require.NoError(t, c.Close())
			}
			stop()
			_, err = os.Stat(path)
			require.ErrorIs(t, err, os.ErrNotExist)
		}
	}
}

// TestUnixSocketInTheWay: the server replaces a socket that a dead server has left. It does not
// replace a socket that is in use, or any other file.
func TestUnixSocketInTheWay(t *testing.T) {
	path := shortPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	s, err := newServer("--port", "0", "--unixsocket", path)
	require.NoError(t, err)
	stop := runServer(t, s)
	require.Equal(t, "+PONG\r\n", inproc.Dial(t, "unix", path).Do("PING"))

	_, err = newServer("--port", "0", "--unixsocket", path)
	require.ErrorContains(t, err, "another server is there")
	require.Equal(t, "+PONG\r\n", inproc.Dial(t, "unix", path).Do("PING"))
	stop()

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = newServer("--port", "0", "--unixsocket", path)
	require.ErrorContains(t, err, "listening on "+path)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))

	_, err = newServer("--port", "0", "--unixsocket", filepath.Join(path, "no", "folder"))
	require.Error(t, err)
	_, err = newServer("--port", "0", "--unixsocket", "/"+strings.Repeat("x", 200))
	require.Error(t, err)
}
