package connection_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// queueing makes the client begin a transaction and queue n bytes in it.
func queueing(t *testing.T, c *inproc.Client, name string, n int) *inproc.Client {
	t.Helper()
	require.Equal(t, inproc.OK, c.Do("CLIENT", "SETNAME", name))
	require.Equal(t, inproc.OK, c.Do("MULTI"))
	for ; n > 0; n -= 100_000 {
		require.Equal(t, inproc.Queued, c.Do("ECHO", strings.Repeat("x", min(n, 100_000))))
	}
	return c
}

// TestClientsThatTakeMostAreClosedBeyondMaxmemoryClients: beyond maxmemory-clients the clients
// that take most memory are closed until the others are within it. A client with CLIENT NO-EVICT
// stays.
func TestClientsThatTakeMostAreClosedBeyondMaxmemoryClients(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "100m") // clients may take a tenth of it
		witness, spared := s.Dial(), s.Dial()
		require.Equal(t, inproc.OK, spared.Do("CLIENT", "NO-EVICT", "ON"))
		require.Contains(t, spared.Do("CLIENT", "LIST"), " flags=e ")
		queueing(t, spared, "spared", 3_000_000)
		small, large, larger := queueing(t, s.Dial(), "small", 500_000), queueing(t, s.Dial(), "large", 1_000_000), queueing(t, s.Dial(), "larger", 2_000_000)
		require.Equal(t, int64(10), witness.Listed("large", "multi"))
		for _, field := range []string{"multi-mem", "tot-mem"} {
			require.InDelta(t, 1_000_000, witness.Listed("large", field), 10_000)
		}
		require.GreaterOrEqual(t, witness.InfoNumber("mem_clients_normal"), int64(6_500_000))

		require.Equal(t, inproc.OK, witness.Do("CONFIG", "SET", "maxmemory-clients", "4m"))
		larger.ExpectEnd()
		large.ExpectEnd()
		require.Equal(t, int64(2), witness.InfoNumber("evicted_clients"))
		for _, c := range []*inproc.Client{small, spared} {
			require.Equal(t, inproc.Queued, c.Do("PING"))
			require.Equal(t, inproc.OK, c.Do("DISCARD"))
		}
		require.Equal(t, int64(-1), witness.Listed("small", "multi"))
		require.Zero(t, witness.Listed("small", "tot-mem"))
		w.Settle()
		require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(100_000), "what clients kept is forgotten")
	})
}

// TestClientMemoryCountsEveryKind: unread replies, unfinished commands, messages and
// subscriptions count as memory of clients.
func TestClientMemoryCountsEveryKind(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--write-timeout", "3600")
		witness := s.Dial()
		require.Equal(t, inproc.OK, witness.Do("CLIENT", "NO-EVICT", "ON"))
		name := func(name string) *inproc.Client {
			c := s.Dial()
			require.Equal(t, inproc.OK, c.Do("CLIENT", "SETNAME", name))
			return c
		}
		input, output, messages, topics := name("input"), name("output"), name("messages"), name("topics")
		input.Send("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 500_000))
		output.Send(strings.Repeat("COMMAND DOCS\r\n", 1000))
		require.NotEmpty(t, messages.Do("SUBSCRIBE", "news"))
		for range 100 {
			witness.Do("PUBLISH", "news", strings.Repeat("x", 100_000))
		}
		require.NotEmpty(t, topics.Do("PSUBSCRIBE", strings.Repeat("x", 500)))
		// A command whose first part has arrived cannot be refused, so its client is closed.
		w.Settle()
		require.GreaterOrEqual(t, witness.Listed("input", "qbuf"), int64(500_000), "all of the input has come")
		for name, field := range map[string]string{"input": "qbuf", "output": "omem", "messages": "omem", "topics": "psub"} {
			require.Positive(t, witness.Listed(name, field), name)
			require.Positive(t, witness.Listed(name, "tot-mem"), name)
		}
		require.Equal(t, inproc.OK, witness.Do("CONFIG", "SET", "maxmemory-clients", "1"))
		w.Until("all are closed but the one whose command is refused", 100*time.Millisecond, time.Minute, func() bool {
			return witness.InfoNumber("connected_clients") == 2
		})
		require.Equal(t, int64(3), witness.InfoNumber("evicted_clients"))
		input.Send(strings.Repeat("x", 500_000) + "\r\nPING\r\n")
		input.Expect(inproc.OOM, inproc.Pong)
	})
}

// TestWritersAreRefusedNotClosed: clients that send long commands, together more than the memory
// for clients, get replies or the error of full memory, and keep their connections.
func TestWritersAreRefusedNotClosed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const writers = 8
		s := w.Start("--maxmemory-clients", "3mb")
		witness := s.Dial()
		require.Equal(t, inproc.OK, witness.Do("CLIENT", "NO-EVICT", "ON"))
		value := strings.Repeat("v", 1_000_000)
		var all []*inproc.Client
		for i := range writers {
			c := s.Dial()
			c.Send("*3\r\n$3\r\nSET\r\n$1\r\n" + strconv.Itoa(i) + "\r\n$1000000\r\n" + value[:900_000])
			all = append(all, c)
		}
		w.Advance(time.Second) // until the next check of the memory of all clients
		require.Greater(t, witness.InfoNumber("total_net_input_bytes"), int64(writers*900_000))
		require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(3<<20), "what they hold is within the bound")
		refused := 0
		for _, c := range all {
			c.Send(value[900_000:] + "\r\nPING\r\n")
			if got := c.Reply(); got != inproc.OK {
				require.Equal(t, inproc.OOM, got)
				refused++
			}
			c.Expect(inproc.Pong)
		}
		require.Positive(t, refused)
		require.Zero(t, witness.InfoNumber("evicted_clients"))
		require.Equal(t, ":"+strconv.Itoa(writers-refused)+"\r\n", witness.Do("DBSIZE"))
	})
}

// TestClientThatTakesMostBySubscriptionsIsClosed: the client whose subscriptions take most memory
// is closed, and no other.
func TestClientThatTakesMostBySubscriptionsIsClosed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		witness, listener := s.Dial(), s.Dial()
		small := queueing(t, s.Dial(), "small", 10_000)
		for i := range 200 {
			require.NotEmpty(t, listener.Do("SUBSCRIBE", strings.Repeat("x", 1000)+strconv.Itoa(i)))
		}
		require.Equal(t, inproc.OK, witness.Do("CLIENT", "NO-EVICT", "ON"))
		require.Equal(t, inproc.OK, witness.Do("CONFIG", "SET", "maxmemory-clients", "200k"))
		listener.ExpectEnd()
		w.Settle()
		require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(200_000), "its subscriptions are over")
		require.Equal(t, inproc.Queued, small.Do("PING"))
		require.Equal(t, int64(1), witness.InfoNumber("evicted_clients"))
	})
}

// TestClientThatReadsIsNotClosed: four clients get replies that together exceed the memory for
// clients. None is closed within the first half second, because a busy machine may be slow to
// read. After that, a client that has read nothing is closed.
func TestClientThatReadsIsNotClosed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory-clients", "4mb", "--write-timeout", "3600")
		witness := s.Dial()
		value := strings.Repeat("x", 1_500_000)
		var all []*inproc.Client
		for range 4 {
			c := s.Dial()
			go c.Command("ECHO", value)
			all = append(all, c)
		}
		w.Advance(400 * time.Millisecond)
		require.Greater(t, witness.InfoNumber("mem_clients_normal"), int64(4<<20))
		require.Zero(t, witness.InfoNumber("evicted_clients"))
		require.Equal(t, inproc.Bulk(value), all[0].Reply())
		w.Advance(time.Second)
		require.Zero(t, witness.InfoNumber("evicted_clients"))
		go all[0].Command("ECHO", value)
		w.Advance(time.Second)
		require.Equal(t, int64(1), witness.InfoNumber("evicted_clients"))
	})
}
