package inproc

import "github.com/stretchr/testify/require"

// WaitWindow is a call that waits for the window which [Client.FillWindow] fills: one unit per
// minute, starting with the first hit. A second call waits for the end of that minute.
const WaitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"

// FillWindow uses up the window of [WaitWindow].
func (c *Client) FillWindow() {
	c.tb.Helper()
	c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n")
	c.Expect(Five(0, 1, 0, -1, 60))
}

// Queue makes n clients of a node of a [World] wait for room with the same command, in this order.
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
