package server_test

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// listed returns a number that CLIENT LIST says of the client of that name.
func (c *client) listed(name, field string) int64 {
	c.t.Helper()
	for line := range strings.Lines(c.do("CLIENT", "LIST")) {
		if !strings.Contains(line, " name="+name+" ") {
			continue
		}
		found := regexp.MustCompile(` ` + field + `=(-?\d+) `).FindStringSubmatch(line)
		require.NotNil(c.t, found, "%s in %s", field, line)
		n, err := strconv.ParseInt(found[1], 10, 64)
		require.NoError(c.t, err)
		return n
	}
	c.t.Fatalf("no client %q", name)
	return 0
}

// infoNumber is info of a field that is a number.
func (c *client) infoNumber(field string) int64 {
	c.t.Helper()
	n, err := strconv.ParseInt(c.info(field), 10, 64)
	require.NoError(c.t, err)
	return n
}

// queueing has the client begin a transaction, and put n bytes into it.
func (c *client) queueing(name string, n int) *client {
	c.t.Helper()
	require.Equal(c.t, okReply, c.do("CLIENT", "SETNAME", name))
	require.Equal(c.t, okReply, c.do("MULTI"))
	for ; n > 0; n -= 100_000 {
		require.Equal(c.t, queuedReply, c.do("ECHO", strings.Repeat("x", min(n, 100_000))))
	}
	return c
}

// TestClientsThatTakeMostAreClosedBeyondMaxmemoryClients fills maxmemory-clients. The
// clients that take most are closed until the others are within it. A client with CLIENT
// NO-EVICT stays.
func TestClientsThatTakeMostAreClosedBeyondMaxmemoryClients(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxmemory", "100m") // of which clients may have a tenth
		witness, spared := f.dial(), f.dial()
		require.Equal(t, okReply, spared.do("CLIENT", "NO-EVICT", "ON"))
		require.Contains(t, spared.do("CLIENT", "LIST"), " flags=e ")
		spared.queueing("spared", 3_000_000)
		small, large, larger := f.dial().queueing("small", 500_000), f.dial().queueing("large", 1_000_000), f.dial().queueing("larger", 2_000_000)
		require.Equal(t, int64(10), witness.listed("large", "multi"))
		for _, field := range []string{"multi-mem", "tot-mem"} {
			require.InDelta(t, 1_000_000, witness.listed("large", field), 10_000)
		}
		require.GreaterOrEqual(t, witness.infoNumber("mem_clients_normal"), int64(6_500_000))

		require.Equal(t, okReply, witness.do("CONFIG", "SET", "maxmemory-clients", "4m"))
		larger.expectEnd()
		large.expectEnd()
		require.Equal(t, int64(2), witness.infoNumber("evicted_clients"))
		for _, c := range []*client{small, spared} {
			require.Equal(t, queuedReply, c.do("PING"))
			require.Equal(t, okReply, c.do("DISCARD"))
		}
		require.Equal(t, int64(-1), witness.listed("small", "multi"))
		require.Zero(t, witness.listed("small", "tot-mem"))
		eventually(t, "what clients kept is forgotten", func() bool { return witness.infoNumber("mem_clients_normal") < 100_000 })
	})
}

// TestClientMemoryCountsEveryKind tests that unread replies, unfinished commands,
// messages and subscriptions count.
func TestClientMemoryCountsEveryKind(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--write-timeout", "3600")
		witness := f.dial()
		require.Equal(t, okReply, witness.do("CLIENT", "NO-EVICT", "ON"))
		name := func(name string) *client {
			c := f.dial()
			require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(16<<10))
			require.Equal(t, okReply, c.do("CLIENT", "SETNAME", name))
			return c
		}
		input, output, messages, topics := name("input"), name("output"), name("messages"), name("topics")
		input.send("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 500_000))
		output.send(strings.Repeat("COMMAND DOCS\r\n", 1000))
		require.NotEmpty(t, messages.do("SUBSCRIBE", "news"))
		for range 100 {
			witness.do("PUBLISH", "news", strings.Repeat("x", 100_000))
		}
		require.NotEmpty(t, topics.do("PSUBSCRIBE", strings.Repeat("x", 500)))
		// A command of which little has come is not refused: its client is closed as well.
		eventually(t, "all of the input has come", func() bool { return witness.listed("input", "qbuf") >= 500_000 })
		for name, field := range map[string]string{"input": "qbuf", "output": "omem", "messages": "omem", "topics": "psub"} {
			eventually(t, name, func() bool {
				return witness.listed(name, field) > 0 && witness.listed(name, "tot-mem") > 0
			})
		}
		require.Equal(t, okReply, witness.do("CONFIG", "SET", "maxmemory-clients", "1"))
		eventually(t, "all are closed but the one whose command is refused", func() bool { return witness.infoNumber("connected_clients") == 2 })
		require.Equal(t, int64(3), witness.infoNumber("evicted_clients"))
		input.send(strings.Repeat("x", 500_000) + "\r\nPING\r\n")
		input.expect(oom, "+PONG\r\n")
	})
}

// TestWritersAreRefusedNotClosed: those that send long commands, more than clients may
// take together, get the error of full memory or their answer, and keep their connection.
func TestWritersAreRefusedNotClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		const writers = 8
		f := start(t, kind, "--maxmemory-clients", "3mb")
		witness := f.dial()
		require.Equal(t, okReply, witness.do("CLIENT", "NO-EVICT", "ON"))
		value := strings.Repeat("v", 1_000_000)
		var all []*client
		for i := range writers {
			c := f.dial()
			c.send("*3\r\n$3\r\nSET\r\n$1\r\n" + strconv.Itoa(i) + "\r\n$1000000\r\n" + value[:900_000])
			all = append(all, c)
		}
		eventually(t, "what they hold is within the bound", func() bool {
			return witness.infoNumber("total_net_input_bytes") > writers*900_000 && witness.infoNumber("mem_clients_normal") < 3<<20
		})
		refused := 0
		for _, c := range all {
			c.send(value[900_000:] + "\r\nPING\r\n")
			if got := c.reply(); got != okReply {
				require.Equal(t, oom, got)
				refused++
			}
			c.expect("+PONG\r\n")
		}
		require.Positive(t, refused)
		require.Zero(t, witness.infoNumber("evicted_clients"))
		require.Equal(t, ":"+strconv.Itoa(writers-refused)+"\r\n", witness.do("DBSIZE"))
	})
}

// TestClientThatTakesMostBySubscriptionsIsClosed has clients with subscriptions. The one
// that takes most by them is closed, and no other.
func TestClientThatTakesMostBySubscriptionsIsClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		witness, listener := f.dial(), f.dial()
		small := f.dial().queueing("small", 10_000)
		for i := range 200 {
			require.NotEmpty(t, listener.do("SUBSCRIBE", strings.Repeat("x", 1000)+strconv.Itoa(i)))
		}
		require.Equal(t, okReply, witness.do("CLIENT", "NO-EVICT", "ON"))
		require.Equal(t, okReply, witness.do("CONFIG", "SET", "maxmemory-clients", "200k"))
		listener.expectEnd()
		eventually(t, "its subscriptions are over", func() bool { return witness.infoNumber("mem_clients_normal") < 200_000 })
		require.Equal(t, queuedReply, small.do("PING"))
		require.Equal(t, int64(1), witness.infoNumber("evicted_clients"))
	})
}

// TestExclusiveTransactionCountsAsClientMemoryUntilItHasRun has a transaction wait for
// exclusive execution. It counts as memory of its client until it has run.
func TestExclusiveTransactionCountsAsClientMemoryUntilItHasRun(t *testing.T) {
	e, worker, late := startLate(t)
	session, _ := e.Open(quietPeer{})
	t.Cleanup(session.Closed)
	const loop = "local n = 0 while n < 1 do n = n + 1 end return n"
	packet := slices.Concat(frame("WATCH", "k"), frame("MULTI"), frame("ECHO", strings.Repeat("x", 100_000)), frame("EVAL", loop, "0"), frame("EXEC"))
	require.Equal(t, transport.Park, session.Feed(worker, packet, nil).Next)
	<-late.came
	require.InDelta(t, 100_000, e.ClientMemory(), 10_000)
	late.letIn()
	eventually(t, "it has run", func() bool { return session.Feed(worker, nil, nil).Next == transport.Read })
	require.Zero(t, e.ClientMemory())
}
