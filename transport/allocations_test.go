package transport_test

import (
	"bytes"
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
// meanwhile counts too, so that a few allocations in thousands of commands are allowed,
// and a burst of them gets another try. With appendfsync always the goroutine transport
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
				const depth = 16
				rounds := 300
				if len(keeps) > 2 {
					rounds = 100 // each waits for an fsync
				}
				most := uint64(depth * rounds / 100)
				allocated := allocations(t, s.Addr().String(), inproc.Encode(nil, words...), depth, rounds)
				for try := 0; try < 5 && allocated >= most; try++ {
					allocated = min(allocated, allocations(t, s.Addr().String(), inproc.Encode(nil, words...), depth, rounds))
				}
				require.Less(t, allocated, most, "%s %v", name, keeps)
			}
		})
	}
}

// allocations sends rounds of so many equal commands over one connection, and counts
// what the whole process has allocated meanwhile.
func allocations(t *testing.T, address string, command []byte, depth, rounds int) uint64 {
	t.Helper()
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
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	for range rounds {
		once()
	}
	runtime.ReadMemStats(&after)
	// What a server does every second allocates a little, and a slow disk makes it many.
	housekeeping := uint64(10 * time.Since(begun).Seconds())
	return max(after.Mallocs-before.Mallocs, housekeeping) - housekeeping
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
