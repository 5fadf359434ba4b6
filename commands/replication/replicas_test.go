package replication_test

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/replicationtest"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/server"
)

// node is a server in a bubble with a test double for its replication.
type node struct {
	*inproc.Node
	double *replicationtest.Node
}

func start(w *inproc.World, options ...string) *node {
	double := replicationtest.New()
	return &node{w.StartWith(func(o *server.Options) { o.Node = double }, options...), double}
}

// replica is a connection that is served as a replica from the start of the stream.
type replica struct {
	*inproc.Client
	t *testing.T
}

// replica opens such a connection, which announces a listening port.
func (n *node) replica(t *testing.T, port int) *replica {
	t.Helper()
	c := n.Dial()
	require.Equal(t, inproc.OK, c.Do("REPLCONF", "listening-port", strconv.Itoa(port), "ip-address", "10.0.0.1"))
	require.Equal(t, inproc.OK, c.Do("REPLCONF", "capa", "eof", "capa", "psync2", "capa", "cell1", "capa", "later"))
	require.Equal(t, "+FULLRESYNC "+replicationtest.ID+" 0 cell1\r\n", c.Do("PSYNC", "?", "-1"))
	return &replica{c, t}
}

// streamed reads the next bytes of the stream and compares them.
func (r *replica) streamed(want string) {
	r.t.Helper()
	got := make([]byte, len(want))
	require.NoError(r.t, r.SetReadDeadline(time.Now().Add(r.Patience)))
	_, err := io.ReadFull(r.R, got)
	require.NoError(r.t, err)
	require.True(r.t, bytes.Equal([]byte(want), got)) // require.Equal would print a long difference
}

// TestReplicaIsSentTheStream: a replica gets the stream from its offset on, in order, whatever
// else its connection is used for. Its commands are read even while there is always more to send.
func TestReplicaIsSentTheStream(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := start(w)
		stream := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
		f.double.Write([]byte(stream))
		c := f.replica(t, 7001)
		require.Equal(t, protocol.PSync{
			ReplID: "?", Offset: -1, Port: 7001, IP: "10.0.0.1", Capa: protocol.CapaEOF | protocol.CapaPSYNC2 | protocol.CapaCell1,
		}, withoutPeer(f.double.Calls()[0]))
		c.streamed(stream)
		f.double.Write([]byte("more"))
		c.streamed("more")
		c.Send("REPLCONF ACK 100\r\n")
		admin := f.Dial()
		w.Settle()
		require.Equal(t, 1, f.double.Acked(100), "heard")
		require.Equal(t, "*3\r\n$6\r\nmaster\r\n:1048580\r\n*1\r\n*3\r\n$8\r\n10.0.0.1\r\n$4\r\n7001\r\n$3\r\n100\r\n", admin.Do("ROLE"))
		require.Equal(t, "1", admin.Info("sync_full"))
		require.Equal(t, "1", admin.Info("connected_slaves"))
		require.Equal(t, "1", admin.Info("connected_clients"), "a replica is none")

		late := &replica{f.Dial(), t}
		require.Equal(t, "+CONTINUE "+replicationtest.ID+" cell1\r\n", late.Do("PSYNC", replicationtest.ID, "1048577"))
		late.streamed("more")
		require.NoError(t, late.Close())
		require.NoError(t, c.Close())
		w.Settle()
		require.Empty(t, f.double.Role().Replicas)
	})
}

func withoutPeer(c protocol.PSync) protocol.PSync {
	c.Client, c.Peer, c.Addr = 0, nil, ""
	return c
}

// TestReplicaIsKilledAndTimesOut: as in Redis, a replica is disconnected by CLIENT KILL, when its
// stream fails, and when it has sent nothing for repl-timeout, not for timeout.
func TestReplicaIsKilledAndTimesOut(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := start(w, "--timeout", "5", "--repl-timeout", "20")
		admin := f.Dial()
		gone := func() {
			t.Helper()
			w.Settle()
			require.Empty(t, f.double.Role().Replicas)
		}
		for _, typ := range []string{"replica", "SLAVE"} {
			c := f.replica(t, 1)
			require.Equal(t, ":0\r\n", admin.Do("CLIENT", "KILL", "TYPE", "master"))
			require.Equal(t, ":0\r\n", admin.Do("CLIENT", "KILL", "TYPE", "normal"))
			require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "TYPE", typ))
			c.ExpectEnd()
			gone()
		}
		c := f.replica(t, 1)
		f.double.Cut()
		c.ExpectEnd()
		gone()
		require.Contains(t, f.Log.String(), replicationtest.ErrCut.Error())

		c = f.replica(t, 1)
		w.Advance(15 * time.Second)
		f.double.Write([]byte("still there"))
		c.streamed("still there")
		admin.ExpectEnd()
		w.Advance(5 * time.Second)
		w.Advance(time.Second) // the server checks once a second
		c.ExpectEnd()
		gone()
	})
}

// TestReplicaMayNotUseKeys: a replica connection may not use keys, and CLIENT PAUSE does not
// block it.
func TestReplicaMayNotUseKeys(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := start(w)
		c, admin := f.replica(t, 1), f.Dial()
		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", c.Do("GET", "a"))
		require.Equal(t, "-ERR Replica can't interact with the keyspace\r\n", c.Do("EVAL", "return 1", "0"))
		require.Equal(t, "+OK\r\n", admin.Do("CLIENT", "PAUSE", "100000", "ALL"))
		c.Send("REPLCONF ACK 7 FACK 3\r\n")
		f.double.Write([]byte("goes on"))
		c.streamed("goes on")
		w.Settle()
		require.Equal(t, 1, f.double.Acked(7), "heard")
		f.Engine().Unpause()
	})
}

// TestWaitWaitsForReplicas: WAIT waits until replicas have acknowledged or its timeout ends, but
// not in a transaction.
func TestWaitWaitsForReplicas(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := start(w, "--appendonly", "yes")
		c, r, admin := f.Dial(), f.replica(t, 1), f.Dial()
		require.Equal(t, ":1\r\n", c.Do("INCR", "a"))
		require.Equal(t, ":0\r\n", c.Do("WAIT", "0", "0"))
		c.Command("WAIT", "1", "0")
		w.Settle()
		require.Contains(t, admin.Do("CLIENT", "LIST"), "flags=b ", "it waits")
		r.Send("REPLCONF ACK 1000000\r\n")
		c.Expect(":1\r\n")
		require.Equal(t, ":1\r\n", c.Do("WAIT", "1", "0"))

		c.Command("WAIT", "2", "100")
		w.Settle()
		require.Contains(t, admin.Do("CLIENT", "LIST"), "flags=b ", "it waits")
		w.Advance(100 * time.Millisecond)
		c.Expect(":1\r\n")

		id := c.ID()
		c.Command("WAIT", "2", "0")
		w.Settle()
		require.Equal(t, ":1\r\n", admin.Do("CLIENT", "UNBLOCK", id), "it waits")
		c.Expect(":1\r\n")

		c.Send("MULTI\r\nWAIT 2 0\r\nEXEC\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", "*1\r\n:1\r\n")

		c.Command("WAIT", "2", "0")
		w.Settle()
		require.Contains(t, admin.Do("CLIENT", "LIST"), "flags=b ", "it waits")
		f.Engine().SetHalt(command.HaltReadOnly, true)
		f.Engine().UnblockAll()
		c.Expect("-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n")
		f.double.ReplicaOf("h", "1")
		require.Contains(t, c.Do("WAIT", "0", "0"), "-ERR WAIT cannot be used with replica instances.")
	})
}

// TestSentinelReconfigures a node with the commands of Redis Sentinel, also while a replica has
// no state yet.
func TestSentinelReconfigures(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := start(w)
		c := f.Dial()
		c.Send("MULTI\r\nSLAVEOF 10.0.0.1 6379\r\nCLIENT KILL TYPE pubsub\r\nEXEC\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n+OK\r\n:0\r\n")
		require.Equal(t, protocol.Role{Replica: true, Host: "10.0.0.1", Port: 6379, State: "connect", Offset: -1}, f.double.Role())
		require.Equal(t, "*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.1\r\n:6379\r\n$7\r\nconnect\r\n:-1\r\n", c.Do("ROLE"))
		require.Equal(t, "slave", c.Info("role"))
		require.Equal(t, "+OK Already connected to specified master\r\n", c.Do("REPLICAOF", "10.0.0.1", "6379"))
		require.Equal(t, "-NOMASTERLINK Can't SYNC while not connected with my master\r\n", c.Do("PSYNC", "?", "-1"))

		f.Engine().SetLoading(true)
		require.Equal(t, "+OK\r\n", c.Do("REPLICAOF", "NO", "ONE"), "it copies the state of its primary")
		require.False(t, f.double.Role().Replica)
		require.Equal(t, "-LOADING Redis is loading the dataset in memory\r\n", c.Do("REPLICAOF", "h", "1"), "it loads its own")
		f.Engine().SetLoading(false)
		require.Contains(t, f.Log.String(), "audit: SLAVEOF")
		require.Contains(t, f.Log.String(), "primary=10.0.0.1:6379")
	})
}

// TestRepliesOfReplicationCommands: the replies are those of Redis 7.0.15, where it has the
// command.
func TestRepliesOfReplicationCommands(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := start(w)
		c := f.Dial()
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
			require.Equal(t, row[1], c.Do(strings.Fields(row[0])...), row[0])
		}
		require.Contains(t, c.Do("SYNC"), "PSYNC")
		c.Send("MULTI\r\nPSYNC ? -1\r\nEXEC\r\n")
		c.Expect("+OK\r\n", "-ERR Command not allowed inside a transaction\r\n", "-EXECABORT Transaction discarded because of previous errors.\r\n")
		c.Send("REPLCONF GETACK *\r\nREPLCONF ACK 1\r\nPING\r\n")
		c.Expect("+PONG\r\n")

		f.replica(t, 7001)
		require.Equal(t, "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.\r\n", c.Do("FAILOVER", "TO", "a", "1", "FORCE"))
		require.Equal(t, "+OK\r\n", c.Do("FAILOVER", "to", "a", "1", "force", "timeout", "10"))
		require.Equal(t, []protocol.Failover{{Host: "a", Port: "1", Force: true, Timeout: 10 * time.Millisecond}}, f.double.Handovers())
		f.double.ReplicaOf("h", "1")
		require.Equal(t, "-ERR FAILOVER is not valid when server is a replica.\r\n", c.Do("FAILOVER"))
	})
}
