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

// limiterPaths are commands that allocate nothing on Go's heap between the socket, the log and the
// reply.
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

// TestHotPathsAllocateNothingOverSockets is TestHotPathsAllocateNothing of package commands with a
// whole server: sockets, and a log if there is one. Everything else that the process does meanwhile
// counts, too, such as the sample of its figures that a server takes each second. So the lowest of
// many short measurements counts, and fewer allocations than packets are taken for those of the rest of
// the process: a path that allocates does so for each command or for each packet. With appendfsync
// always the goroutine transport allocates when it parks a connection, so that case is tested only with
// event loops.
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
				require.Less(t, allocated, uint64(packets), "%s %v", name, keeps)
			}
		})
	}
}

// packets is the number of packets of one measurement.
const packets = 10

// allocations sends packets of 16 commands over one connection, and counts the allocations of the whole
// process. It repeats this up to 30 times and returns the lowest count.
func allocations(t *testing.T, address string, command []byte) uint64 {
	t.Helper()
	const depth, measurements = 16, 30
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
		// Replies to one command differ in length, so count their line ends.
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
		for range packets {
			once()
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}

// linesOf returns the number of lines of a reply to the command: the reply of a limiter is an array
// of five, and a value is preceded by its length.
func linesOf(command []byte) int {
	switch {
	case bytes.Contains(command, []byte("PING")):
		return 1
	case bytes.Contains(command, []byte("GET")):
		return 2
	}
	return 6
}
