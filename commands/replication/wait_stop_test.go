package replication_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestStopDoesNotAnswerWait: that a server stops says nothing of what replicas have. WAIT ends without
// an answer, with its connection.
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
