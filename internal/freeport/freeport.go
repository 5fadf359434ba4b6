// Package freeport chooses ports for servers that tests run as processes of their own. Such
// servers cannot get a listener from the test.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range from which systems choose the port of a client
// and of a listener that names none, so that nothing takes one between the look and the
// start of the server, nor while it restarts, but another server of this package's.
const firstPort, lastPort = 18000, 32000

// Choose returns a port of loopback that nobody listens on.
func Choose() string {
	for {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil && listener.Close() == nil {
			return port
		}
	}
}
