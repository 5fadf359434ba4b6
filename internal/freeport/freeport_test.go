//go:build real

package freeport_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// TestChosenPortIsFreeAndNotEphemeral tests that a chosen port is free, and outside of the range
// from which systems choose.
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
// process listens: the first step of a choice fails.
func TestChosenPortIsNobodyElses(t *testing.T) {
	_, err := net.ListenPacket("udp", "127.0.0.1:"+freeport.Choose())
	require.Error(t, err)
}
