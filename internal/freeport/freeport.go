// Package freeport chooses ports for programs of others that tests start, and that need a port:
// nodes of a cluster, replicas and sentinels tell each other theirs, redis_exporter listens at one,
// scripts that Redis plays ask for the addresses of clients, and internal/attack and
// internal/storebench measure servers over TCP. Such programs cannot get a listener from the test.
// Ours can (see internal/activation), but in an image without a shell, and where a page shows how a
// port is set. A Redis that needs no port has a Unix socket. A port is chosen, too, where a test
// comes back to an address that was closed for a while.
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

// most is how many ports are kept for a process.
const most = 2000

// chosen are the ports that this process has been given. A test often chooses several before
// its server listens on the first, or comes back to one that it has left. A UDP socket on each
// keeps other processes from choosing it meanwhile: packages are tested beside each other.
var chosen = struct {
	sync.Mutex
	ports map[string]net.PacketConn // guarded by the mutex
}{ports: make(map[string]net.PacketConn)}

// Choose returns a port of loopback that nobody listens on, and that neither this process nor
// another one of tests has been given; thousands of calls later it may come again.
func Choose() string {
	chosen.Lock()
	defer chosen.Unlock()
	if len(chosen.ports) >= most {
		for _, kept := range chosen.ports {
			_ = kept.Close() // nothing was sent
		}
		clear(chosen.ports)
	}
	for {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		addr := net.JoinHostPort("127.0.0.1", port)
		kept, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", addr)
		if err == nil && listener.Close() == nil {
			chosen.ports[port] = kept
			return port
		}
		_ = kept.Close() // nothing was sent
	}
}
