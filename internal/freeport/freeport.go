// Package freeport chooses ports for servers that tests run as processes of their own. Such
// servers cannot get a listener from the test.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the range from which systems choose the port of a client
// and of a listener that names none, so that nothing takes one between the look and the
// start of the server, nor while it restarts, but another server of this package's.
const firstPort, lastPort = 18000, 32000

// chosen are the ports that this process has been given. A test often chooses several before
// its server listens on the first, or comes back to one that it has left.
var chosen = struct {
	sync.Mutex
	ports map[int]bool // guarded by the mutex
}{ports: make(map[int]bool)}

// Choose returns a port of loopback that nobody listens on, and that it has not returned
// before; thousands of calls later it may come again.
func Choose() string {
	chosen.Lock()
	defer chosen.Unlock()
	if len(chosen.ports) >= (lastPort-firstPort)/2 {
		clear(chosen.ports)
	}
	for {
		n := firstPort + rand.IntN(lastPort-firstPort)
		if chosen.ports[n] {
			continue
		}
		port := strconv.Itoa(n)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil && listener.Close() == nil {
			chosen.ports[n] = true
			return port
		}
	}
}
