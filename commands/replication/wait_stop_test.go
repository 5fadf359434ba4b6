package replication_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestStopDoesNotAnswerWait: when a server stops, that says nothing about its replicas. WAIT ends
// without a reply when its connection is closed.
func TestStopDoesNotAnswerWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start("--appendonly", "yes"), w.Start("--appendonly", "yes")
		b.Follow(a)
		for _, call := range []string{"WAIT 2 0\r\n", "WAIT 5 100000\r\n"} {
			c := a.Dial()
			require.Equal(t, "+OK\r\n", c.Do("SET", "k", "1"))
			require.Equal(t, ":1\r\n", c.Do("WAIT", "1", "0"))
			c.Send(call)
			defer c.ExpectEnd()
		}
		late := a.Dial()
		require.Equal(t, "+PONG\r\n", late.Do("PING"))
		w.Settle()
		a.Engine().Drain()
		late.Send("WAIT 2 0\r\n")
		late.ExpectEnd()
		require.NoError(t, a.Stop())
	})
}
