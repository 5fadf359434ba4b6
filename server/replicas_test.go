package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/standby"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/standbytest"
	"github.com/cellserver/cellserver/server"
)

// startNode is start of a server whose node is a double.
func startNode(t testing.TB, kind string, flags ...string) (*fixture, *standbytest.Node) {
	t.Helper()
	c, err := config.Load(append([]string{"--transport", kind, "--io-threads", "2", "--dir", t.TempDir()}, flags...), nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := standbytest.New()
	f := &fixture{t: t, clock: clocktest.New(epoch), log: &logBuffer{}, addr: l.Addr().String(), done: make(chan error, 1)}
	f.Server, err = server.New(c, server.Options{
		Log: slog.New(slog.NewTextHandler(f.log, nil)), Listeners: []net.Listener{l}, Clock: f.clock, Node: n,
	})
	require.NoError(t, err)
	go func() { f.done <- f.Run(context.Background()) }()
	t.Cleanup(f.end)
	return f, n
}

// replica opens a connection and has it served as a replica from the start of the stream.
func (f *fixture) replica(port int) *client {
	f.t.Helper()
	c := f.dial()
	require.Equal(f.t, "+OK\r\n", c.do("REPLCONF", "listening-port", strconv.Itoa(port), "ip-address", "10.0.0.1"))
	require.Equal(f.t, "+OK\r\n", c.do("REPLCONF", "capa", "eof", "capa", "psync2", "capa", "cell1", "capa", "later"))
	require.Equal(f.t, "+FULLRESYNC "+standbytest.ID+" 0 cell1\r\n", c.do("PSYNC", "?", "-1"))
	return c
}

// streamed reads the next bytes of the stream and compares them.
func (c *client) streamed(want []byte) {
	c.t.Helper()
	got := make([]byte, len(want))
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.ReadFull(c.r, got)
	require.NoError(c.t, err)
	require.True(c.t, bytes.Equal(want, got))
}

// TestReplicaIsSentTheStream: from where it asks for, in order, whatever else its connection is
// used for, and what it says is heard while there is always more to be sent.
func TestReplicaIsSentTheStream(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, n := startNode(t, kind)
		stream := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
		n.Write(stream)
		c := f.replica(7001)
		require.Equal(t, standby.SyncCall{
			ReplID: "?", Offset: -1, Port: 7001, IP: "10.0.0.1", Capa: standby.CapaEOF | standby.CapaPSYNC2 | standby.CapaCell1,
		}, withoutPeer(n.Calls()[0]))
		c.streamed(stream)
		n.Write([]byte("more"))
		c.streamed([]byte("more"))
		c.send("REPLCONF ACK 100\r\n")
		admin := f.dial()
		eventually(t, "heard", func() bool { return n.Acked(100) == 1 })
		require.Equal(t, "*3\r\n$6\r\nmaster\r\n:1048580\r\n*1\r\n*3\r\n$8\r\n10.0.0.1\r\n$4\r\n7001\r\n$3\r\n100\r\n", admin.do("ROLE"))
		require.Equal(t, "1", admin.info("sync_full"))
		require.Equal(t, "1", admin.info("connected_slaves"))
		require.Equal(t, "1", admin.info("connected_clients"), "a replica is none")

		late := f.dial()
		require.Equal(t, "+CONTINUE "+standbytest.ID+" cell1\r\n", late.do("PSYNC", standbytest.ID, "1048577"))
		late.streamed([]byte("more"))
		require.NoError(t, late.Close())
		require.NoError(t, c.Close())
		eventually(t, "both are closed", func() bool { return len(n.Role().Replicas) == 0 })
	})
}

func withoutPeer(c standby.SyncCall) standby.SyncCall {
	c.Client, c.Peer, c.Addr = 0, nil, ""
	return c
}

// TestReplicaIsHeardWhileThereIsMore: a replica that always has more to read is read from all the
// same: its acknowledgement arrives before the end of a stream that grows as fast as it is read.
func TestReplicaIsHeardWhileThereIsMore(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, n := startNode(t, kind)
		piece := make([]byte, 4<<20)
		n.Write(piece)
		c := f.replica(1)
		c.send("REPLCONF ACK 9\r\n")
		buf := make([]byte, 1<<20)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		for left := len(piece); n.Acked(9) == 0; {
			got, err := c.r.Read(buf)
			require.NoError(t, err)
			if left -= got; left < 2<<20 {
				require.Less(t, n.Role().Offset, int64(512<<20), "the replica is not heard")
				n.Write(piece)
				left += len(piece)
			}
		}
	})
}

// TestSlowReplicaTakesLittleMemory: of a long stream that a replica does not read the server holds
// a turn, and the replica is not closed for it.
func TestSlowReplicaTakesLittleMemory(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, n := startNode(t, kind, "--write-timeout", "1", "--maxmemory-clients", "64kb")
		stream := bytes.Repeat([]byte("x"), 32<<20)
		n.Write(stream)
		c := f.replica(1)
		admin := f.dial()
		eventually(t, "the kernel takes no more", func() bool {
			before := n.Counts().BytesOut
			admin.do("PING")
			f.Engine().EvictClients(1 << 30)
			return before > 0 && n.Counts().BytesOut == before && strings.Contains(admin.do("CLIENT", "LIST", "TYPE", "replica"), "flags=S ")
		})
		require.Less(t, n.Counts().BytesOut, int64(16<<20))
		list := admin.do("CLIENT", "LIST", "TYPE", "slave")
		omem, err := strconv.Atoi(field(list, "omem"))
		require.NoError(t, err)
		require.LessOrEqual(t, omem, 256<<10)
		c.streamed(stream)
	})
}

func field(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}

// TestReplicaIsKilledAndTimesOut as a replica of Redis: by CLIENT KILL, when its stream fails,
// and when it has said nothing for repl-timeout, not for timeout.
func TestReplicaIsKilledAndTimesOut(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, n := startNode(t, kind, "--timeout", "5", "--repl-timeout", "20")
		admin := f.dial()
		gone := func() { eventually(t, "closed", func() bool { return len(n.Role().Replicas) == 0 }) }
		for _, typ := range []string{"replica", "SLAVE"} {
			c := f.replica(1)
			require.Equal(t, ":0\r\n", admin.do("CLIENT", "KILL", "TYPE", "master"))
			require.Equal(t, ":0\r\n", admin.do("CLIENT", "KILL", "TYPE", "normal"))
			require.Equal(t, ":1\r\n", admin.do("CLIENT", "KILL", "TYPE", typ))
			c.expectEnd()
			gone()
		}
		c := f.replica(1)
		n.Cut()
		c.expectEnd()
		gone()
		require.Contains(t, f.log.String(), standbytest.ErrCut.Error())

		c = f.replica(1)
		f.clock.Advance(10 * time.Second)
		admin.do("PING")
		f.Engine().CloseOverdue(f.clock.Now())
		n.Write([]byte("still there"))
		c.streamed([]byte("still there"))
		f.clock.Advance(10 * time.Second)
		f.Engine().CloseOverdue(f.clock.Now())
		c.expectEnd()
		gone()
	})
}

// TestReplicaMayNotUseKeys, and is not held up by a pause of all commands.
func TestReplicaMayNotUseKeys(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, n := startNode(t, kind)
		c, admin := f.replica(1), f.dial()
		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", c.do("GET", "a"))
		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", c.do("EVAL", "return 1", "0"))
		require.Equal(t, "+OK\r\n", admin.do("CLIENT", "PAUSE", "100000", "ALL"))
		c.send("REPLCONF ACK 7 FACK 3\r\n")
		n.Write([]byte("goes on"))
		c.streamed([]byte("goes on"))
		eventually(t, "heard", func() bool { return n.Acked(7) == 1 })
		f.Engine().Unpause()
	})
}

// TestWaitWaitsForReplicas until they have acknowledged, for its time, or in a transaction not at all.
func TestWaitWaitsForReplicas(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, n := startNode(t, kind, "--appendonly", "yes")
		c, r, admin := f.dial(), f.replica(1), f.dial()
		require.Equal(t, ":1\r\n", c.do("INCR", "a"))
		require.Equal(t, ":0\r\n", c.do("WAIT", "0", "0"))
		c.command("WAIT", "1", "0")
		eventually(t, "it waits", func() bool { return strings.Contains(admin.do("CLIENT", "LIST"), "flags=b ") })
		r.send("REPLCONF ACK 1000000\r\n")
		c.expect(":1\r\n")
		require.Equal(t, ":1\r\n", c.do("WAIT", "1", "0"))

		c.command("WAIT", "2", "100")
		eventually(t, "it waits", func() bool { return strings.Contains(admin.do("CLIENT", "LIST"), "flags=b ") })
		f.clock.Advance(100 * time.Millisecond)
		c.expect(":1\r\n")

		id := c.id()
		c.command("WAIT", "2", "0")
		eventually(t, "it waits", func() bool { return admin.do("CLIENT", "UNBLOCK", id) == ":1\r\n" })
		c.expect(":1\r\n")

		c.send("MULTI\r\nWAIT 2 0\r\nEXEC\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "*1\r\n:1\r\n")

		c.command("WAIT", "2", "0")
		eventually(t, "it waits", func() bool { return strings.Contains(admin.do("CLIENT", "LIST"), "flags=b ") })
		f.Engine().SetHalt(command.HaltReadOnly, true)
		f.Engine().UnblockAll()
		c.expect("-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n")
		n.Follow("h", "1")
		require.Contains(t, c.do("WAIT", "0", "0"), "-ERR WAIT cannot be used with replica instances.")
	})
}

// TestSentinelReconfigures a node with what Redis Sentinel sends, also while a replica has no state yet.
func TestSentinelReconfigures(t *testing.T) {
	f, n := startNode(t, "goroutine")
	c := f.dial()
	c.send("MULTI\r\nSLAVEOF 10.0.0.1 6379\r\nCLIENT KILL TYPE pubsub\r\nEXEC\r\n")
	c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n+OK\r\n:0\r\n")
	require.Equal(t, standby.Role{Replica: true, Host: "10.0.0.1", Port: 6379, State: "connect", Offset: -1}, n.Role())
	require.Equal(t, "*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.1\r\n:6379\r\n$7\r\nconnect\r\n:-1\r\n", c.do("ROLE"))
	require.Equal(t, "slave", c.info("role"))
	require.Equal(t, "+OK Already connected to specified master\r\n", c.do("REPLICAOF", "10.0.0.1", "6379"))
	require.Equal(t, "-NOMASTERLINK Can't SYNC while not connected with my master\r\n", c.do("PSYNC", "?", "-1"))

	f.Engine().SetLoading(true)
	require.Equal(t, "+OK\r\n", c.do("REPLICAOF", "NO", "ONE"), "it copies the state of its primary")
	require.False(t, n.Role().Replica)
	require.Equal(t, "-LOADING Redis is loading the dataset in memory\r\n", c.do("REPLICAOF", "h", "1"), "it loads its own")
	f.Engine().SetLoading(false)
	require.Contains(t, f.log.String(), "audit: SLAVEOF")
	require.Contains(t, f.log.String(), "primary=10.0.0.1:6379")
}

// TestRepliesOfReplicationCommands are those of Redis 7.0.15, where it has the command.
func TestRepliesOfReplicationCommands(t *testing.T) {
	f, n := startNode(t, "goroutine")
	c := f.dial()
	for _, row := range [][2]string{
		{"REPLICAOF a", "-ERR wrong number of arguments for 'replicaof' command\r\n"},
		{"REPLICAOF a b", "-ERR Invalid master port\r\n"},
		{"REPLICAOF a 70000", "-ERR Invalid master port\r\n"},
		{"REPLICAOF a -1", "-ERR Invalid master port\r\n"},
		{"REPLICAOF no two", "-ERR Invalid master port\r\n"},
		{"REPLICAOF a,b 1", "-ERR Invalid master host\r\n"},
		{"REPLICAOF no one", "+OK\r\n"},
		{"REPLCONF", "+OK\r\n"},
		{"REPLCONF listening-port", "-ERR syntax error\r\n"},
		{"REPLCONF listening-port abc", "-ERR value is not an integer or out of range\r\n"},
		{"REPLCONF ip-address a b", "-ERR syntax error\r\n"},
		{"REPLCONF nosuch x", "-ERR Unrecognized REPLCONF option: nosuch\r\n"},
		{"REPLCONF ip-address " + strings.Repeat("a", 300), "-ERR REPLCONF ip-address provided by replica instance is too long: 300 bytes\r\n"},
		{"REPLCONF version 8.0.1", "+OK\r\n"},
		{"PSYNC a", "-ERR wrong number of arguments for 'psync' command\r\n"},
		{"PSYNC ? x", "-ERR value is not an integer or out of range\r\n"},
		{"SYNC x", "-ERR wrong number of arguments for 'sync' command\r\n"},
		{"WAIT 1 x", "-ERR timeout is not an integer or out of range\r\n"},
		{"WAIT x 1", "-ERR value is not an integer or out of range\r\n"},
		{"WAIT 1 -1", "-ERR timeout is negative\r\n"},
		{"WAIT -1 10", ":0\r\n"},
		{"FAILOVER", "-ERR FAILOVER requires connected replicas.\r\n"},
		{"FAILOVER x", "-ERR syntax error\r\n"},
		{"FAILOVER to a", "-ERR syntax error\r\n"},
		{"FAILOVER to a b", "-ERR value is not an integer or out of range\r\n"},
		{"FAILOVER abort", "-ERR No failover in progress.\r\n"},
		{"FAILOVER abort x", "-ERR syntax error\r\n"},
		{"FAILOVER timeout", "-ERR syntax error\r\n"},
		{"FAILOVER timeout 0", "-ERR FAILOVER timeout must be greater than 0\r\n"},
		{"FAILOVER timeout -1", "-ERR FAILOVER timeout must be greater than 0\r\n"},
		{"FAILOVER timeout x", "-ERR value is not an integer or out of range\r\n"},
		{"FAILOVER timeout 10 timeout 20", "-ERR syntax error\r\n"},
		{"FAILOVER to a 1 to b 2", "-ERR syntax error\r\n"},
		{"FAILOVER timeout 99999999999999999999", "-ERR value is not an integer or out of range\r\n"},
	} {
		require.Equal(t, row[1], c.do(strings.Fields(row[0])...), row[0])
	}
	require.Contains(t, c.do("SYNC"), "PSYNC")
	c.send("MULTI\r\nPSYNC ? -1\r\nEXEC\r\n")
	c.expect("+OK\r\n", "-ERR Command not allowed inside a transaction\r\n", "-EXECABORT Transaction discarded because of previous errors.\r\n")
	c.send("REPLCONF GETACK *\r\nREPLCONF ACK 1\r\nPING\r\n")
	c.expect("+PONG\r\n")

	f.replica(7001)
	require.Equal(t, "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.\r\n", c.do("FAILOVER", "TO", "a", "1", "FORCE"))
	require.Equal(t, "+OK\r\n", c.do("FAILOVER", "to", "a", "1", "force", "timeout", "10"))
	require.Equal(t, []standby.FailoverCall{{Host: "a", Port: "1", Force: true, Timeout: 10 * time.Millisecond}}, n.Handovers())
	n.Follow("h", "1")
	require.Equal(t, "-ERR FAILOVER is not valid when server is a replica.\r\n", c.do("FAILOVER"))
}
