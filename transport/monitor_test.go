package transport_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestMonitorThatReadsNothingIsCutOff: the output that waits for a monitor is bounded, and no other
// client is affected.
func TestMonitorThatReadsNothingIsCutOff(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--client-output-buffer-limit", "pubsub 1mb 1mb 1", "--client-output-backlog", "16kb")
		m, c := f.Dial(), f.Dial()
		require.Equal(t, "+OK\r\n", m.Do("MONITOR"))
		value := strings.Repeat("x", 100_000)
		inproc.Await(t, "cut off", func() bool {
			require.Equal(t, "+OK\r\n", c.Do("SET", "k", value))
			return f.Engine().Halts.Load() == 0
		})
		require.Less(t, f.Engine().ClientMemory(), int64(4<<20))
	})
}
