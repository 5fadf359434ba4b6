// Package freeport chooses ports for programs that tests start and that cannot inherit a listener.
// These are nodes of a cluster, replicas and sentinels, which tell each other their ports;
// redis_exporter; a Redis that plays a test script in which addresses of clients occur; and servers
// that a benchmark measures over TCP. Our own programs get listeners (see internal/activation),
// except in an image without a shell, or if a page shows how to set a port. A Redis that needs no
// port uses a Unix socket. A test also chooses a port if it needs to use the same address again
// after it was closed for a while.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// firstPort and lastPort are the range of ports. It is below the range from which systems choose
// ports for clients, and for listeners without a fixed port. So only another user of this package
// could take a port between its choice and the start of the server, or during a restart.
const firstPort, lastPort = 18000, 32000

// maxPorts is the maximum number of ports that are reserved for one process.
const maxPorts = 2000

// chosen has the ports that this process has chosen. A test often chooses several ports before its
// server listens on the first, or uses a port again that was closed. Tests of several packages run
// at the same time, so a UDP socket on each port keeps other processes from choosing it.
var chosen = struct {
	sync.Mutex
	ports map[string]net.PacketConn // the socket that reserves each port; guarded by mu
}{ports: make(map[string]net.PacketConn)}

// Choose returns a loopback port on which no process listens, and which neither this process nor
// another test process has chosen. After maxPorts calls, the ports are released and may be chosen
// again.
func Choose() string {
	chosen.Lock()
	defer chosen.Unlock()
	if len(chosen.ports) >= maxPorts {
		for _, kept := range chosen.ports {
			_ = kept.Close() // an error does not matter, because nothing was sent
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
		_ = kept.Close() // an error does not matter, because nothing was sent
	}
}
