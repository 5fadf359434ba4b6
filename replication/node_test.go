package replication_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

func names(fields []protocol.Field) (all []string) {
	for _, f := range fields {
		all = append(all, f.Name)
	}
	return all
}

var _ env.Node = (*replication.Node)(nil)

// history lists the last fields of both roles.
var history = []string{
	"master_failover_state", "master_replid", "master_replid2", "master_repl_offset", "second_repl_offset",
	"repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen",
}

// TestInfo: the names and the order of fields are those of Redis 7. The fields that Redis lacks
// follow.
func TestInfo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.Equal(t, append(append([]string{"role", "connected_slaves"}, history...), "cell_data_set"), names(a.node.Info()))
		require.Equal(t, "master", a.info()["role"])
		require.Equal(t, "0", a.info()["repl_backlog_active"])
		require.Equal(t, "-1", a.info()["second_repl_offset"])
		require.Equal(t, protocol.Role{Offset: 0}, a.node.Role())
		id := a.info()["master_replid"]

		require.True(t, a.client().put("k", "v"))
		b.follow(a)
		awaitEqual(t, a, b)
		require.Equal(t, id, a.info()["master_replid"], "the first replica is of the first history")
		ours := []string{"cell_data_set", "cell_repl_lag_ms", "cell_repl_error"}
		up := []string{
			"role", "master_host", "master_port", "master_link_status", "master_last_io_seconds_ago", "master_sync_in_progress",
			"slave_read_repl_offset", "slave_repl_offset", "slave_priority", "slave_read_only", "replica_announced", "connected_slaves",
		}
		require.Equal(t, append(append(up, history...), ours...), names(b.node.Info()))
		info := b.info()
		for name, value := range map[string]string{
			"role": "slave", "master_host": "a", "master_port": "1", "master_link_status": "up",
			"master_sync_in_progress": "0", "slave_priority": "100", "slave_read_only": "1", "replica_announced": "1",
			"connected_slaves": "0", "cell_repl_error": "", "repl_backlog_active": "1", "repl_backlog_size": "1048576",
		} {
			require.Equal(t, value, info[name], name)
		}
		b.awaitField("master_last_io_seconds_ago", "0") // the primary sends its clock all the time
		eventually(t, "acknowledged", func() bool {
			return a.node.Role().Replicas[0].Offset == a.node.Role().Offset
		})
		require.Equal(t, []string{"role", "connected_slaves", "slave0"}, names(a.node.Info())[:3])
		role := b.node.Role()
		require.Equal(t, protocol.Role{Replica: true, Host: "a", Port: 1, State: "connected", Offset: role.Offset}, role)
		require.Positive(t, b.node.Counts().BytesIn)
		require.Positive(t, a.node.Counts().BytesOut)

		before := stopwatch()
		w.isolate(a.address, true)
		b.awaitField("master_link_status", "down")
		require.Equal(t, "-1", b.info()["master_last_io_seconds_ago"])
		since, err := strconv.Atoi(b.info()["master_link_down_since_seconds"])
		require.NoError(t, err)
		require.GreaterOrEqual(t, since, 0)
		require.LessOrEqual(t, since, int((stopwatch()-before)/time.Second))
	})
}

// TestInfoOfASync checks INFO of a replica during a full resynchronization.
func TestInfoOfASync(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		b := w.start("b:2", 0)
		require.True(t, b.client().put("own", "v"))
		hold := make(chan struct{})
		t.Cleanup(func() { close(hold) })
		s := (&speech{t: t, offset: begin}).block("k")
		w.playOnce("slow:1", func(conn net.Conn, r *bufio.Reader) {
			for words := []string{""}; words[0] != "PSYNC"; {
				var err error
				if words, err = readCommand(r); err != nil {
					return
				}
				reply := "+OK\r\n"
				if words[0] == "PSYNC" {
					reply = "+FULLRESYNC " + someID + " 1000 cell1\r\n"
				}
				_, _ = io.WriteString(conn, reply)
			}
			_, _ = conn.Write(s.out)
			words, err := readCommand(r)
			require.NoError(t, err)
			require.Equal(t, []string{"REPLCONF", "ACK", "0"}, words, "nothing is acknowledged before the end")
			<-hold
		})
		b.node.ReplicaOf("slow", "1")
		b.awaitField("slave_priority", "0")
		info := b.info()
		for name, value := range map[string]string{
			"master_link_status": "down", "master_sync_in_progress": "1", "master_sync_total_bytes": "-1",
			"master_sync_left_bytes": "-1", "master_link_down_since_seconds": "-1", "master_sync_read_bytes": strconv.Itoa(len(s.out)),
		} {
			require.Equal(t, value, info[name], name)
		}
		require.Equal(t, "sync", b.node.Role().State)
		require.Equal(t, int64(-1), b.node.Role().Offset)
		eventually(t, "nothing is served", b.host.loading.Load)
		s2 := *b.set.Load()
		s2.Timeout = time.Millisecond
		b.set.Store(&s2) // the primary sends nothing
		b.awaitField("cell_repl_error", "the primary is silent (repl-timeout)")
	})
}

// TestSelf: a node refuses to follow itself.
func TestSelf(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := simnet.New() // the node compares the addresses of the connection
		const host, port = "127.0.0.1", "6379"
		l, err := network.Listen(net.JoinHostPort(host, port))
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		w := newWeb(t)
		b := w.startWith(net.JoinHostPort(host, port), 0, func(o *replication.Options) {
			o.Dial = func(ctx context.Context, _, to string) (net.Conn, error) { return network.Dial(ctx, host, to) }
		})
		b.node.ReplicaOf(host, port)
		b.awaitField("cell_repl_error", "the primary is this server itself")

		s := *b.set.Load()
		s.Listens = []int{1} // the announced port does not matter, which is for other nodes
		b.set.Store(&s)
		for said := 0; said == 0; {
			conn, err := l.Accept()
			require.NoError(t, err)
			said, _ = conn.Read(make([]byte, 1))
			require.NoError(t, conn.Close())
		}
	})
}

// redis is a RedisFollower that reports its calls.
type redis struct {
	node    func() *replication.Node
	given   chan string
	forgot  atomic.Bool
	current string
	state   func() int
}

func (f *redis) Current() (string, int64, bool) {
	if f.forgot.Load() {
		return "", 0, false
	}
	return f.current, 8, true
}

func (f *redis) Forget() { f.forgot.Store(true) }

func (f *redis) Follow(ctx context.Context, _ net.Conn, r *bufio.Reader, reply string) error {
	line, _ := r.ReadString('\n')
	if err := f.node().RedisBegins(); err != nil {
		return err
	}
	f.given <- reply + line + strconv.Itoa(f.state())
	<-f.given
	if err := f.node().RedisWhole(); err != nil {
		return err
	}
	<-ctx.Done()
	return errors.New("over")
}

// TestRedis lets the RedisFollower take over a connection, and the Redis hand over to the node.
func TestRedis(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		var b *member
		f := &redis{node: func() *replication.Node { return b.node }, given: make(chan string), current: someID}
		f.state = func() int { return len(b.state()) }
		b = w.startWith("b:2", 0, func(o *replication.Options) {
			o.Redis = f
			o.ServeRedis = func(c protocol.PSync) ([]byte, transport.Pump, resp.Error) {
				return []byte("+FULLRESYNC of " + c.ReplID + "\r\n"), nil, ""
			}
		})
		require.True(t, b.client().put("own", "x"))
		told := make(chan []string, 1)
		w.playOnce("redis:1", func(conn net.Conn, r *bufio.Reader) {
			for {
				words, err := readCommand(r)
				if err != nil {
					return
				}
				reply := "+OK\r\n"
				if words[0] == "PSYNC" {
					told <- words
					reply = "+FULLRESYNC " + someID + " 7\r\n$EOF\n"
				}
				_, _ = io.WriteString(conn, reply)
			}
		})
		before := b.clock.Now()
		b.node.ReplicaOf("redis", "1")
		require.Equal(t, []string{"PSYNC", someID, "9"}, <-told)
		require.Equal(t, "+FULLRESYNC "+someID+" 7$EOF\n0", <-f.given, "nothing is left of the state of before")
		require.Equal(t, "0", b.info()["slave_priority"])
		require.Equal(t, "down", b.info()["master_link_status"])
		require.True(t, b.host.loading.Load())
		f.given <- ""
		b.awaitUp()
		require.False(t, b.host.loading.Load())
		require.GreaterOrEqual(t, b.clock.Now(), before)
		require.Less(t, b.clock.Now().Sub(before), soon)

		news := &wire{news: make(chan struct{}, 1)}
		call := protocol.PSync{Peer: news, Failover: true, ReplID: someID, Offset: 8}
		_, _, err := b.node.PSync(call)
		require.Equal(t, resp.Error("ERR PSYNC FAILOVER replid must match my replid."), err, "it lacks a byte")
		call.Offset = 9
		reply, pump, err := b.node.PSync(call)
		require.Empty(t, err)
		require.Empty(t, reply)
		<-news.news
		out, more, failed := pump.Fill(nil, 5)
		require.NoError(t, failed)
		require.True(t, more)
		require.Equal(t, "+FULL", string(out))
		out, more, failed = pump.Fill(out, 1000)
		require.NoError(t, failed)
		require.False(t, more)
		require.Equal(t, "+FULLRESYNC of "+someID+"\r\n", string(out))
		pump.Closed()
		b.awaitPrimary()
		require.True(t, f.forgot.Load())
		require.True(t, b.client().put("new", "x"))
	})
}

// TestStreamEndsWithoutReplicas: a primary whose backlog was freed writes no stream, and begins
// another history for the next replica.
func TestStreamEndsWithoutReplicas(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		c := a.client()
		require.True(t, c.put("k", "1"))
		acked, o := a.node.Await(1, a.keeperPosition(), nil)
		require.Zero(t, acked)
		require.Equal(t, transport.Pending, o, "there is no stream")
		b.follow(a)
		awaitEqual(t, a, b)
		eventually(t, "acknowledged", func() bool { return a.node.Acked(a.keeperPosition()) == 1 })
		require.Equal(t, 1, a.node.Acked(0))
		id := a.info()["master_replid"]
		a.node.Freed() // too late: there is a replica
		require.True(t, c.put("k", "2"))
		awaitEqual(t, a, b)
		w.isolate(b.address, true)
		a.awaitField("connected_slaves", "0")
		b.awaitField("master_link_status", "down") // otherwise it would seem to be up with all of the ended stream
		a.node.Freed()
		eventually(t, "no stream", func() bool {
			before := a.source.Offset()
			require.True(t, c.put("k", "3"))
			return a.source.Offset() == before
		})
		w.isolate(b.address, false)
		awaitEqual(t, a, b)
		require.NotEqual(t, id, a.info()["master_replid"])
		require.Equal(t, int64(2), b.keeper.suspended.Load())
	})
}

// keeperPosition returns the position of the log, or one that is not 0 if there is no log.
func (m *member) keeperPosition() uint64 {
	if m.keeper.log == nil {
		return 1
	}
	return m.keeper.log.Position()
}

// TestGapBeginsAHistory: if the log drops records, replicas get a full resynchronization.
func TestGapBeginsAHistory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		c := a.client()
		require.True(t, c.put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		id := a.info()["master_replid"]
		a.keeper.log.Suspend(errors.New("a test"))
		require.True(t, c.put("k", "2"))
		eventually(t, "a new history", func() bool { return a.info()["master_replid"] != id })
		awaitEqual(t, a, b)
		require.Equal(t, int64(2), b.keeper.suspended.Load())
	})
}

// TestClockOfAReplica: the clock of a replica is behind its primary's and never ahead. After a
// promotion it continues from there, whatever the wall clock shows.
func TestClockOfAReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 24*time.Hour), w.start("b:2", 0)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		b.awaitUp()
		for range 100 {
			behind := b.clock.Now()
			require.LessOrEqual(t, behind, a.clock.Now())
			require.Less(t, a.clock.Now().Sub(behind), soon)
		}
		before := b.clock.Now()
		w.isolate(a.address, true)
		b.node.Promote(nil)
		b.awaitPrimary()
		require.GreaterOrEqual(t, b.clock.Now(), before)
		require.Less(t, a.clock.Now().Sub(b.clock.Now()).Abs(), soon)
		require.True(t, b.client().do(func(v *keyspace.Handle) { require.GreaterOrEqual(t, v.Now(), before) }))
	})
}

// TestFilesThatCannotAdopt: a state that could not be written to the files is served
// nevertheless.
func TestFilesThatCannotAdopt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		full := errors.New("the disk is full")
		b.keeper.rewriteErr.Store(&full)
		require.True(t, a.client().put("k", "1"))
		b.follow(a)
		awaitEqual(t, a, b)
		require.False(t, b.host.loading.Load())
	})
}

func TestRedisReplicaIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a := w.start("a:1", 0)
		_, pump, err := a.node.PSync(protocol.PSync{ReplID: "?", Offset: -1})
		require.Nil(t, pump)
		require.True(t, strings.HasPrefix(string(err), "ERR "))
	})
}
