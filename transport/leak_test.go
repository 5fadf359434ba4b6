package transport_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/internal/inproc"
)

// openDescriptors returns the number of descriptors of this process, 0 if it is not known.
func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestStoppedServerLeavesNoGoroutineOrDescriptor: a server that has had idle, blocked, slow,
// half-sent, refused and killed clients leaves no goroutine and no descriptor behind.
func TestStoppedServerLeavesNoGoroutineOrDescriptor(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		warm := inproc.Serve(t, kind) // descriptors that the runtime opens once stay open
		require.Equal(t, inproc.Pong, warm.Dial().Do("PING"))
		warm.End()
		before := goleak.IgnoreCurrent()
		files := openDescriptors()

		f := inproc.Serve(t, kind, "--maxclients", "20", "--shutdown-timeout", "1")
		c := f.Dial()
		const call = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST"
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do(strings.Fields(call)...))
		conns := []*inproc.Client{c}
		for _, packet := range []string{
			call + " BLOCK 0\r\n", call + " BLOCK 0\r\n", call + " BLOCK 0\r\n",
			"PING\r\n", "*2\r\n$4\r\nECHO\r\n$9\r\nhal", "WATCH k\r\nMULTI\r\nPING\r\n", "CLIENT KILL ID 2\r\n", strings.Repeat("COMMAND DOCS\r\n", 500),
		} {
			busy := f.Dial()
			busy.Send(packet)
			conns = append(conns, busy)
		}
		for range 20 { // most of them are refused
			conns = append(conns, f.Dial())
		}
		inproc.Await(t, "all are served", func() bool {
			n, err := strconv.Atoi(c.Info("total_connections_received"))
			return err == nil && n >= 29
		})
		f.End()
		for _, c := range conns {
			_ = c.Close() // most are closed by the server
		}
		inproc.Await(t, "no goroutine is left", func() bool { return goleak.Find(before) == nil })
		runtime.GC()
		inproc.Await(t, "all descriptors are closed", func() bool { return openDescriptors() <= files })
	})
}
