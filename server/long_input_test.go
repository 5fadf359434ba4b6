package server_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// fullHeap starts a server whose heap has the size that the test sets, sends a part of a long
// command, and waits for the janitor's next look.
func fullHeap(w *inproc.World) (s *inproc.Node, heap *atomic.Int64, c *inproc.Client) {
	heap = new(atomic.Int64)
	s = w.StartWith(func(o *server.Options) {
		o.LimitHeap = func(int64) int64 { return 0 }
		o.HeapSize = heap.Load
	}, "--maxmemory", "100mb")
	heap.Store(1 << 40)
	c = s.Dial()
	c.Send("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 200_000))
	w.Advance(time.Millisecond)
	return s, heap, c
}

// restOfLong completes the command of fullHeap.
var restOfLong = strings.Repeat("x", 800_000) + "\r\n"

// TestLongInputWaitsForTheCollector: while Go's heap exceeds its bound, the rest of a long command
// is not read, and short commands are answered. Then the long command continues.
func TestLongInputWaitsForTheCollector(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s, heap, c := fullHeap(w)
		go c.Send(restOfLong) // the network buffers less than that
		w.Advance(50 * time.Millisecond)
		other := s.Dial()
		require.Less(t, other.InfoNumber("total_net_input_bytes"), int64(700_000))
		require.Equal(t, inproc.Pong, other.Do("PING"))
		heap.Store(0)
		w.Advance(5 * time.Millisecond)
		require.Equal(t, inproc.Bulk(strings.Repeat("x", 1_000_000)), c.Reply())
		c.Send("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 200_000) + restOfLong)
		require.Len(t, c.Reply(), len(inproc.Bulk(strings.Repeat("x", 1_000_000))), "nothing waits any more")
	})
}

// TestLongInputDoesNotWaitForEver: a heap that stays too large only makes long commands slow.
func TestLongInputDoesNotWaitForEver(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s, _, c := fullHeap(w)
		go c.Send(restOfLong) // the network buffers less than that
		answered := make(chan string, 1)
		go func() { answered <- c.Reply() }()
		w.Until("the command is whole", 10*time.Millisecond, 20*100*time.Millisecond, func() bool { return len(answered) > 0 })
		require.Equal(t, inproc.Bulk(strings.Repeat("x", 1_000_000)), <-answered)
		require.Equal(t, inproc.Pong, s.Dial().Do("PING"))
	})
}

// TestStopDoesNotWaitForMemory: a server that stops runs the input that has arrived, although it
// waited for memory.
func TestStopDoesNotWaitForMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s, _, c := fullHeap(w)
		short := s.Dial()
		short.Send(strings.Repeat("PING\r\n", 20_000))
		w.Advance(time.Millisecond)
		began := time.Now()
		require.NoError(t, s.Stop())
		require.Less(t, time.Since(began), 50*time.Millisecond)
		c.ExpectEnd()
		short.Expect(inproc.Pong)
	})
}

// TestLongCommandsAreRefusedWithinMilliseconds: clients that send long commands at the same time do
// not keep more than maxmemory-clients until the next look at all clients.
func TestLongCommandsAreRefusedWithinMilliseconds(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory-clients", "3mb")
		w.Advance(101 * time.Millisecond)
		for range 8 {
			s.Dial().Send("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 900_000))
		}
		w.Advance(10 * time.Millisecond)
		require.Less(t, s.Dial().InfoNumber("mem_clients_normal"), int64(3<<20))
		require.Zero(t, s.Dial().InfoNumber("evicted_clients"))
	})
}
