package blocking_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestStopClosesThoseThatWait: a server that stops sends no empty reply to clients that wait for
// elements. It closes the connection after the replies to earlier commands, as a stopping Redis
// does. Clients treat this as a lost connection and try the next server again.
func TestStopClosesThoseThatWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		var clients []*inproc.Client
		for _, call := range []string{
			"BLPOP l 0", "BRPOP l m 0", "BLPOP l 600", "BLMOVE l m LEFT RIGHT 0", "BRPOPLPUSH l m 0",
			"BLMPOP 0 1 l LEFT", "BZPOPMIN z 0", "BZPOPMAX z 600", "BZMPOP 0 1 z MIN COUNT 3",
		} {
			for _, hello := range []string{"HELLO 2", "HELLO 3"} {
				c := s.Dial()
				c.Do("HELLO", hello[len(hello)-1:])
				c.Send("PING\r\n" + call + "\r\nPING\r\n")
				clients = append(clients, c)
			}
		}
		w.Settle()
		_, waits := s.Engine().CountClients()
		require.EqualValues(t, len(clients), waits)
		require.NoError(t, s.Stop())
		for _, c := range clients {
			c.Expect("+PONG\r\n")
			c.ExpectEnd()
		}
	})
}

// TestNoPopWaitsOnceTheServerStops: a pop that finds no element while the server stops gets no
// reply either. A pop in a transaction would not have waited, and is answered.
func TestNoPopWaitsOnceTheServerStops(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		full, empty, multi := s.Dial(), s.Dial(), s.Dial()
		require.Equal(t, ":2\r\n", full.Do("RPUSH", "l", "a", "b"))
		require.Equal(t, "+PONG\r\n", empty.Do("PING"))
		require.Equal(t, "+OK\r\n", multi.Do("MULTI"))
		require.Equal(t, "+QUEUED\r\n", multi.Do("BLPOP", "none", "0"))
		s.Engine().Drain()
		require.Equal(t, "*2\r\n$1\r\nl\r\n$1\r\na\r\n", full.Do("BLPOP", "l", "0"))
		require.Equal(t, "*1\r\n*-1\r\n", multi.Do("EXEC"))
		empty.Send("BLPOP none 0\r\n")
		empty.ExpectEnd()
		require.Equal(t, "$1\r\nb\r\n", full.Do("LPOP", "l"))
		require.NoError(t, s.Stop())
	})
}

// TestElementIsNotGivenToAClientThatIsKilled: if a transaction pushes an element and kills the
// client that waits for it, the element stays in the list.
func TestElementIsNotGivenToAClientThatIsKilled(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		waiter, next, other := s.Dial(), s.Dial(), s.Dial()
		id := waiter.ID()
		waiter.Command("BLPOP", "k", "0")
		w.Settle()
		other.Send("MULTI\r\nRPUSH k v\r\nCLIENT KILL ID " + id + "\r\nEXEC\r\n")
		other.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Array(":1\r\n", ":1\r\n"))
		waiter.ExpectEnd()
		require.Equal(t, inproc.Array(inproc.Bulk("v")), other.Do("LRANGE", "k", "0", "-1"))

		waiter = s.Dial()
		id = waiter.ID()
		waiter.Command("BLPOP", "l", "0")
		w.Settle()
		next.Command("BLPOP", "l", "0")
		w.Settle()
		other.Send("MULTI\r\nRPUSH l v\r\nCLIENT KILL ID " + id + "\r\nEXEC\r\n")
		other.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Array(":1\r\n", ":1\r\n"))
		next.Expect(inproc.Array(inproc.Bulk("l"), inproc.Bulk("v")))
	})
}
