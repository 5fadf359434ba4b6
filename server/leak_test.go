package server_test

import (
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// openFiles is how many descriptors this process has; 0 where that cannot be seen.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestStoppedServerLeavesNoGoroutineOrDescriptor: after a life with idle, waiting, slow,
// half-sent, refused and killed clients a server leaves no goroutine and no descriptor
// behind.
func TestStoppedServerLeavesNoGoroutineOrDescriptor(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		warm := start(t, kind) // what the runtime opens once stays open
		require.Equal(t, "+PONG\r\n", warm.dial().do("PING"))
		warm.end()
		before := goleak.IgnoreCurrent()
		files := openFiles()

		f := start(t, kind, "--maxclients", "20", "--shutdown-timeout", "1")
		c := f.dial()
		f.fill(c)
		conns := append(f.queue(3, waitWindow), c)
		for _, packet := range []string{"PING\r\n", "*2\r\n$4\r\nECHO\r\n$9\r\nhal", "WATCH k\r\nMULTI\r\nPING\r\n", "CLIENT KILL ID 2\r\n", strings.Repeat("COMMAND DOCS\r\n", 500)} {
			busy := f.dial()
			busy.send(packet)
			conns = append(conns, busy)
		}
		for range 20 {
			refused, err := net.Dial("tcp", f.addr)
			require.NoError(t, err)
			conns = append(conns, &client{Conn: refused, t: t})
		}
		eventually(t, "all are served", func() bool { return f.Stats().Accepted >= 29 })
		f.end()
		for _, c := range conns {
			_ = c.Close() // most are closed by the other end
		}
		leftBehind(t, before)
		runtime.GC()
		eventually(t, "all descriptors are closed", func() bool { return openFiles() <= files })
	})
}
