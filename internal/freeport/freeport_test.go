//go:build real

package freeport_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// TestChosenPortIsFreeAndNotEphemeral tests that a port can be listened on at once, and
// is none that a system chooses.
func TestChosenPortIsFreeAndNotEphemeral(t *testing.T) {
	port := freeport.Choose()
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	require.Less(t, n, 32768)
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// TestPortsAreChosenOnce tests that two ports of one test are never the same.
func TestPortsAreChosenOnce(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		port := freeport.Choose()
		require.False(t, seen[port], port)
		seen[port] = true
	}
}

// TestChosenPortIsNobodyElses tests that no other process chooses a port before the server of this
// one listens: what another one would do first fails.
func TestChosenPortIsNobodyElses(t *testing.T) {
	_, err := net.ListenPacket("udp", "127.0.0.1:"+freeport.Choose())
	require.Error(t, err)
}
