package server_test

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
	"github.com/cellserver/cellserver/internal/freeport"
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

// socketPath is short enough for a unix socket, whatever the temporary folder.
func socketPath(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("permissions of sockets are those of unix")
	}
	dir, err := os.MkdirTemp("", "cell")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "s")
}

// TestUnixSocket: served over a unix socket alone, with the permissions asked for, and
// gone when the server is.
func TestUnixSocket(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		for text, perm := range map[string]os.FileMode{"700": 0o700, "0": 0, "770": 0o770, "600": 0o600, "777": 0o777} {
			path := socketPath(t)
			s, err := newServer(t, "--port", "0", "--unixsocket", path, "--unixsocketperm", text, "--transport", kind)
			require.NoError(t, err)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, perm, info.Mode().Perm())
			stop := run(t, s)
			if perm&0o200 != 0 || os.Getuid() == 0 {
				c := dial(t, "unix", path)
				require.Equal(t, "+PONG\r\n", c.do("PING"))
				line := c.do("CLIENT", "INFO")
				require.Contains(t, line, " addr="+path+":0 ")
				require.Contains(t, line, " laddr="+path+":0 ")
				require.Equal(t, "0", c.info("tcp_port"))
				require.NoError(t, c.Close())
			}
			stop()
			_, err = os.Stat(path)
			require.ErrorIs(t, err, os.ErrNotExist)
		}
	})
}

// TestUnixSocketInTheWay: a socket that a dead server left is replaced, one that is
// served is not, and nothing else that lies there is touched.
func TestUnixSocketInTheWay(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	s, err := newServer(t, "--port", "0", "--unixsocket", path)
	require.NoError(t, err)
	stop := run(t, s)
	require.Equal(t, "+PONG\r\n", dial(t, "unix", path).do("PING"))

	_, err = newServer(t, "--port", "0", "--unixsocket", path)
	require.ErrorContains(t, err, "another server is there")
	require.Equal(t, "+PONG\r\n", dial(t, "unix", path).do("PING"))
	stop()

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = newServer(t, "--port", "0", "--unixsocket", path)
	require.ErrorContains(t, err, "listening on "+path)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))

	_, err = newServer(t, "--port", "0", "--unixsocket", filepath.Join(path, "no", "folder"))
	require.Error(t, err)
	_, err = newServer(t, "--port", "0", "--unixsocket", "/"+strings.Repeat("x", 200))
	require.Error(t, err)
}

// TestListenFaults: what cannot be listened on ends the start with its address, and gives
// back what was opened before.
func TestListenFaults(t *testing.T) {
	_, err := newServer(t, "--port", "0")
	require.ErrorContains(t, err, "nothing to listen on")

	port := freeport.Choose()
	for _, password := range []string{"", "x"} { // as in Redis, where it is not everything either
		_, err = newServer(t, "--port", port, "--bind", "", "--requirepass", password)
		require.ErrorContains(t, err, "nothing to listen on: bind is empty")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	defer taken.Close()
	_, err = newServer(t, "--port", port, "--bind", "127.0.0.1")
	require.ErrorContains(t, err, "listening on 127.0.0.1")
	require.NoError(t, taken.Close())

	path := socketPath(t)
	_, err = newServer(t, "--port", port, "--unixsocket", path+"/no/folder")
	require.Error(t, err)
	again, err := net.Listen("tcp", "127.0.0.1:"+port)
	require.NoError(t, err, "the port is free again")
	require.NoError(t, again.Close())

	_, err = newServer(t, "--port", port, "--bind", "192.0.2.1", "--requirepass", "x")
	require.ErrorContains(t, err, "listening on 192.0.2.1")
	_, err = newServer(t, "--port", port, "--bind", "-192.0.2.1", "--requirepass", "x")
	require.ErrorContains(t, err, "none of the addresses exists here")
	s, err := newServer(t, "--port", port, "--bind", "127.0.0.1", "-192.0.2.1", "--requirepass", "x", "--tcp-backlog", "5")
	require.NoError(t, err)
	stop := run(t, s)
	c := dial(t, "tcp", "127.0.0.1:"+port)
	require.Equal(t, "+OK\r\n", c.do("AUTH", "x"))
	require.Equal(t, port, c.info("tcp_port"))
	stop()
}

// TestLogFile: the log is appended to a file, and one that cannot be opened is a fault.
func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		c, err := config.Load([]string{"--logfile", path}, nil)
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s, err := server.New(c, server.Options{Listeners: []net.Listener{l}})
		require.NoError(t, err)
		run(t, s)()
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(content), "ready to accept connections"))
	require.Equal(t, 2, strings.Count(string(content), "msg=stopped"))
	_, err = newServerWithLog(t, filepath.Join(path, "no"))
	require.ErrorContains(t, err, "opening the log")
}

func newServerWithLog(t *testing.T, path string) (*server.Server, error) {
	t.Helper()
	c, err := config.Load([]string{"--logfile", path}, nil)
	require.NoError(t, err)
	return server.New(c, server.Options{})
}
