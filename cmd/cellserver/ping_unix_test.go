//go:build real && unix

package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// pinged runs ping and returns its status and its output. Its timeout is longer than the default
// unless args change it, because a busy machine may delay the server or this process.
func pinged(args ...string) (status int, said string) {
	var out bytes.Buffer
	status = run(append([]string{"ping", "--timeout", "20"}, args...), nil, &out, &out)
	return status, out.String()
}

// TestPingFindsTheServerOfTheEnvironment: ping works as a health check in a container, with and
// without a password, on a port and on a socket.
func TestPingFindsTheServerOfTheEnvironment(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := startDaemon(t, "--requirepass", "secret@/", "--unixsocket", socket)
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	t.Setenv("CELLSERVER_PORT", port)
	status, said := pinged()
	require.Zero(t, status, said)
	require.Contains(t, said, "NOAUTH", "a server that wants a password works")

	t.Setenv("CELLSERVER_REQUIREPASS", "secret@/")
	status, said = pinged()
	require.Zero(t, status, said)
	require.Equal(t, "PONG\n", said)

	t.Setenv("CELLSERVER_PORT", "0")
	t.Setenv("CELLSERVER_UNIXSOCKET", socket)
	status, said = pinged()
	require.Zero(t, status, said)
	require.Equal(t, "PONG\n", said)

	t.Setenv("CELLSERVER_REQUIREPASS", "wrong")
	status, said = pinged()
	require.Equal(t, 1, status)
	require.Contains(t, said, "wrong")

	t.Setenv("CELLSERVER_UNIXSOCKET", "")
	status, said = pinged()
	require.Equal(t, 1, status)
	require.Contains(t, said, "name its address")
}

// TestPingOfAServerWhoseUserMayNotPing: an error reply also shows that the server works.
func TestPingOfAServerWhoseUserMayNotPing(t *testing.T) {
	p := startDaemon(t, "--user", "default", "on", "nopass", "-@all", "+shutdown")
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	t.Setenv("CELLSERVER_PORT", port)
	status, said := pinged()
	require.Zero(t, status, said)
	require.Contains(t, said, "NOPERM")
}

// TestPingOfABusyServer: a server that runs a script is not dead.
func TestPingOfABusyServer(t *testing.T) {
	p := startDaemon(t, "--busy-reply-threshold", "1", "--requirepass", "secret")
	client := func() *redis.Client {
		c := redis.NewClient(&redis.Options{ // it does not repeat a command: the script would have ended
			Addr: p.addr, Password: "secret", Protocol: 2, MaxRetries: -1, ReadTimeout: patience, DisableIdentity: true,
		})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	ended := make(chan error, 1)
	runs, kills := client(), client()
	go func() { ended <- runs.Eval(t.Context(), "while true do end", nil).Err() }()
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	t.Setenv("CELLSERVER_PORT", port)
	t.Setenv("CELLSERVER_REQUIREPASS", "secret")
	require.Eventually(t, func() bool {
		status, said := pinged()
		require.Zero(t, status, said)
		return strings.HasPrefix(said, "BUSY ")
	}, patience, patience/10_000)
	require.NoError(t, kills.ScriptKill(t.Context()).Err())
	require.ErrorContains(t, <-ended, "killed")
}
