//go:build unix

package main

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPingFindsTheServerOfTheEnvironment: as a health check in a container calls it, with and
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

// TestPingOfAServerWhoseUserMayNotPing: it has answered, and so it works.
func TestPingOfAServerWhoseUserMayNotPing(t *testing.T) {
	p := startDaemon(t, "--user", "default", "on", "nopass", "-@all", "+shutdown")
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	t.Setenv("CELLSERVER_PORT", port)
	status, said := pinged()
	require.Zero(t, status, said)
	require.Contains(t, said, "NOPERM")
}
