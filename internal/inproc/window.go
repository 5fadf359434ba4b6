package inproc

import "github.com/stretchr/testify/require"

// WaitWindow waits for the window that [Client.FillWindow] fills: one unit a minute, which starts
// with its first hit. So a second call waits for the end of the minute.
const WaitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"

// FillWindow uses the window of [WaitWindow] up.
func (c *Client) FillWindow() {
	c.tb.Helper()
	c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n")
	c.Expect(Five(0, 1, 0, -1, 60))
}

// Queue has n clients of a node of a [World] wait for room, by a command, one behind the other.
func (w *World) Queue(s *Node, n int, command string) []*Client {
	w.t.Helper()
	before := s.Keyspace().Waiting()
	conns := make([]*Client, n)
	for i := range conns {
		conns[i] = s.Dial()
		conns[i].Send(command)
		w.Settle()
		require.Equal(w.t, before+i+1, s.Keyspace().Waiting())
	}
	return conns
}
