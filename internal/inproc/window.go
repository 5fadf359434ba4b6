package inproc

import "github.com/stretchr/testify/require"

// WaitWindow is a call, in the inline form, that waits for room in the window that
// [Client.FillWindow] fills. The window admits one unit per minute, from the first call on. If
// several calls wait, each waits for another minute.
const WaitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"

// FillWindow uses up the window of the key of [WaitWindow].
func (c *Client) FillWindow() {
	c.tb.Helper()
	c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n")
	c.Expect(Five(0, 1, 0, -1, 60))
}

// Queue makes n clients of the node s wait for room by the same command, one after another, and
// returns them in the order in which they wait.
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
