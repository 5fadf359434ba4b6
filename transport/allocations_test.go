package transport_test

import (
	"bytes"
	"math"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// limiterPaths are commands whose way from the socket to the log and back to the socket takes
// nothing from Go's heap.
var limiterPaths = map[string][]string{
	"PING":       {"PING"},
	"GET":        {"GET", "cell"},
	"CLThrottle": {"CL.THROTTLE", "cell", "15", "30", "60", "1"},
	"SWCounter":  {"SW.ALLOW", "counter", "1000000", "60", "1"},
	"SWFixed":    {"SW.ALLOW", "fixed", "1000000", "60", "1", "FIXED"},
	"TBGreedy":   {"TB.ACQUIRE", "greedy", "100", "1000000", "1", "1"},
	"TBInterval": {"TB.ACQUIRE", "interval", "100", "1000", "1", "1", "INTERVAL"},
	"TBLeaky":    {"TB.ACQUIRE", "leaky", "100", "1000000", "1", "1", "LEAKY"},
}

// TestHotPathsAllocateNothingOverSockets is TestHotPathsAllocateNothing of package
// commands with all that a server has: sockets, and a log if there is one. Whatever else the process does
// meanwhile counts too, such as the sample of its figures that a server takes each second: so the
// least of many short measurements counts. With appendfsync always the goroutine transport
// parks a connection in a way that is not free, so that is asked of event loops only.
func TestHotPathsAllocateNothingOverSockets(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector allocates")
	}
	for _, keeps := range [][]string{nil, {"--appendonly", "yes"}, {"--appendonly", "yes", "--appendfsync", "always"}} {
		inproc.EachTransport(t, func(t *testing.T, kind string) {
			if len(keeps) > 2 && kind == "goroutine" {
				t.Skip("it is not asked for")
			}
			s := inproc.Serve(t, kind, keeps...) // with everysec, by default
			s.Dial().Do("CL.THROTTLE", "cell", "15", "30", "60", "1")
			for name, words := range limiterPaths {
				allocated := allocations(t, s.Addr().String(), inproc.Encode(nil, words...))
				require.Less(t, allocated, uint64(2), "%s %v", name, keeps)
			}
		})
	}
}

// allocations sends a command 160 times over one connection, in packets of 16, and counts what the
// whole process allocated meanwhile. It does so up to 30 times and returns the least count.
func allocations(t *testing.T, address string, command []byte) uint64 {
	t.Helper()
	const depth, rounds, measurements = 16, 10, 30
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(inproc.Patience)))
	var packet []byte
	for range depth {
		packet = append(packet, command...)
	}
	reply := make([]byte, 64<<10)
	once := func() {
		_, err := conn.Write(packet)
		require.NoError(t, err)
		// Replies to one command differ in length, so their ends are counted.
		for lines := 0; lines < depth*linesOf(command); {
			n, err := conn.Read(reply)
			require.NoError(t, err)
			for _, b := range reply[:n] {
				if b == '\n' {
					lines++
				}
			}
		}
	}
	for range 50 {
		once()
	}
	least := uint64(math.MaxUint64)
	for n := 0; n < measurements && least > 0; n++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			once()
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}

// linesOf is how many lines a reply to the command has: that of a limiter is an array
// of five, a value has its length before it.
func linesOf(command []byte) int {
	switch {
	case bytes.Contains(command, []byte("PING")):
		return 1
	case bytes.Contains(command, []byte("GET")):
		return 2
	}
	return 6
}
