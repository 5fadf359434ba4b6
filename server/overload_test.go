package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/transport"
)

const maxClientsText = "-ERR max number of clients reached\r\n"

// TestClientBeyondMaxclientsGetsTheErrorOfRedis connects one client more than maxclients.
// It gets the error of Redis. A client that leaves makes room.
func TestClientBeyondMaxclientsGetsTheErrorOfRedis(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxclients", "50")
		conns := make([]*client, 50)
		for i := range conns {
			conns[i] = f.dial()
			require.Equal(t, "+PONG\r\n", conns[i].do("PING"))
		}
		for range 500 {
			c, err := net.Dial("tcp", f.addr)
			require.NoError(t, err)
			require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
			text, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, maxClientsText, string(text))
			require.NoError(t, c.Close())
		}
		require.Equal(t, "500", conns[0].info("rejected_connections"))
		require.Equal(t, "50", conns[0].info("connected_clients"))
		require.Equal(t, "+OK\r\n", conns[1].do("QUIT"))
		conns[1].expectEnd()
		eventually(t, "there is room", func() bool {
			c := f.dial()
			defer c.Close()
			_, _ = io.WriteString(c.Conn, "PING\r\n") // a refusal may have closed it already
			text, err := c.r.ReadString('\n')
			return err == nil && text == "+PONG\r\n"
		})
		require.Equal(t, "+OK\r\n", conns[0].do("CONFIG", "SET", "maxclients", "60"))
		for range 10 {
			require.Equal(t, "+PONG\r\n", f.dial().do("PING"))
		}
	})
}

// TestMaxclientsIsTenThousandByDefault connects ten thousand clients and one more.
func TestMaxclientsIsTenThousandByDefault(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for i := range 10_000 - 1 {
			session, rejection := f.Engine().Open(quietPeer{})
			require.NotNil(t, session, "client %d: %s", i, rejection)
		}
		last := f.dial()
		require.Equal(t, "+PONG\r\n", last.do("PING"))
		refused := f.dial()
		refused.expect(maxClientsText)
		refused.expectEnd()
		require.Equal(t, "10000", last.info("connected_clients"))
	})
}

// TestSilentRefusedClientsDelayNobody refuses clients that send and read nothing. They
// delay nobody.
func TestSilentRefusedClientsDelayNobody(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxclients", "1")
		c := f.dial()
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		for range 600 {
			silent, err := net.Dial("tcp", f.addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = silent.Close() })
		}
		for range 100 {
			require.Equal(t, "+PONG\r\n", c.do("PING"))
		}
	})
}

// TestOnlyRequestsWithinTheLimitsAreAccepted sends the largest key, argument, command and
// number of arguments, and one more of each.
func TestOnlyRequestsWithinTheLimitsAreAccepted(t *testing.T) {
	const keyTooLong = "-ERR key is too long, at most 16384 bytes\r\n"
	key := strings.Repeat("k", 16<<10)
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		require.Equal(t, five(0, 2, 1, -1, 1), c.do("CL.THROTTLE", key, "1", "1", "1"))
		for _, args := range [][]string{
			{"CL.THROTTLE", key + "k", "1", "1", "1"},
			{"DEL", "a", "b", key + "k"},
			{"RENAME", "a", key + "k"},
			{"OBJECT", "ENCODING", key + "k"},
			{"RL.MULTI", "2", "a", key + "k", "CL", "1", "1", "1", "CL", "1", "1", "1"},
			{"WATCH", key + "k"},
		} {
			require.Equal(t, keyTooLong, c.do(args...), args[0])
		}
		require.Equal(t, bulk(strings.Repeat("x", 1<<20-100)), c.do("ECHO", strings.Repeat("x", 1<<20-100)))
		require.Equal(t, "+PONG\r\n", c.do("PING"))

		many := make([]string, 65536)
		for i := range many {
			many[i] = "k"
		}
		many[0] = "EXISTS"
		require.Equal(t, ":0\r\n", c.do(many...))
		c.send("*65537\r\n")
		c.expect(badMultibulk)
		c.expectEnd()

		c = f.dial()
		c.send(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n", 512<<20+1))
		c.expect(badBulk)
		c.expectEnd()

		c = f.dial()
		require.Equal(t, okReply, c.do("CONFIG", "SET", "client-query-buffer-limit", "1mb"))
		half := strings.Repeat("x", 1<<19)
		c.send("*3\r\n$6\r\nEXISTS\r\n" + bulk(half) + bulk(half))
		c.expect("-ERR the command is longer than client-query-buffer-limit admits, 1048576\r\n")
		require.Equal(t, "+PONG\r\n", c.do("PING"))
	})
}

// TestConfigSetOfLimitsReachesOpenConnections sets the limits by CONFIG SET. They hold
// for open connections too.
func TestConfigSetOfLimitsReachesOpenConnections(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "proto-max-bulk-len", "2mb", "client-query-buffer-limit", "3mb"))
		large := strings.Repeat("x", 2<<20)
		require.Equal(t, bulk(large), c.do("ECHO", large))
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "proto-max-bulk-len", "1kb"))
		require.Equal(t, "-ERR an argument of 1025 bytes is longer than proto-max-bulk-len, 1024\r\n", c.do("ECHO", large[:1025]))
	})
}

// TestUnauthenticatedClientsHaveLowLimits tests the limits before authentication: 10
// arguments of 4 KiB, 16 KiB in total in both directions, and 10 seconds.
func TestUnauthenticatedClientsHaveLowLimits(t *testing.T) {
	const noAuth = "-NOAUTH Authentication required.\r\n"
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		open := func() *client { return f.dial() }
		for packet, want := range map[string]string{
			"*11\r\n":                        "-ERR Protocol error: unauthenticated multibulk length\r\n",
			"*2\r\n$4\r\nAUTH\r\n$4097\r\n":  "-ERR Protocol error: unauthenticated bulk length\r\n",
			strings.Repeat("x", 16<<10+1):    "-ERR Protocol error: too big inline request\r\n",
			"*65537\r\n":                     badMultibulk,
			"*1\r\n$9223372036854775807\r\n": badBulk,
			"*9223372036854775807\r\n":       badMultibulk,
			"*10\r\n$4\r\nPING\r\n$-1\r\nx":  badBulk,
			"*10\r\n" + strings.Repeat("$4096\r\n"+strings.Repeat("x", 4096)+"\r\n", 4): "-ERR Protocol error: too big request\r\n",
		} {
			c := open()
			_, _ = io.WriteString(c.Conn, packet) // may be cut short
			c.expect(want)
			c.expectEnd()
		}
		c := open()
		c.send("*10\r\n$4\r\nPING\r\n" + strings.Repeat("$1\r\nx\r\n", 9))
		c.expect(noAuth)

		// 16 KiB in and out: a PING costs 6 and its refusal 34.
		c = open()
		go func() { _, _ = io.WriteString(c.Conn, strings.Repeat("PING\r\n", 10_000)) }() // cut short
		answers := 0
		for {
			line, err := c.r.ReadString('\n')
			if err != nil {
				break
			}
			require.Equal(t, noAuth, line)
			answers++
		}
		require.InDelta(t, 16<<10, answers*(6+len(noAuth)), 64)

		// The same without an answer: empty requests count as well.
		c = open()
		_, _ = io.WriteString(c.Conn, strings.Repeat("\r\n", 9<<10)) // may be cut short
		c.expectEnd()

		late, idle, known := open(), open(), open()
		require.Equal(t, "+OK\r\n", known.do("AUTH", "sesame"))
		require.Equal(t, noAuth, late.do("PING"))
		require.Equal(t, noAuth, idle.do("PING"))
		f.police(9999 * time.Millisecond)
		require.Equal(t, "+OK\r\n", late.do("AUTH", "sesame"))
		f.police(time.Millisecond)
		idle.expectEnd()
		require.Equal(t, "+PONG\r\n", late.do("PING"))
		require.Equal(t, bulk(strings.Repeat("x", 100_000)), known.do("ECHO", strings.Repeat("x", 100_000)))
	})
}

// TestLowLimitsEndWithAuthentication sends commands before and behind AUTH in one packet.
// Those before it do not count against those behind it.
func TestLowLimitsEndWithAuthentication(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind, "--requirepass", "sesame").dial()
		large := strings.Repeat("x", 50_000)
		c.send("PING\r\nAUTH sesame\r\n" + string(frame("ECHO", large)) + "RESET\r\nPING\r\nAUTH sesame\r\n" + string(frame("ECHO", large)))
		c.expect("-NOAUTH Authentication required.\r\n", "+OK\r\n", bulk(large), "+RESET\r\n",
			"-NOAUTH Authentication required.\r\n", "+OK\r\n", bulk(large))
	})
}

// TestSlowReadersTakeLittleAndDelayNobody has fifty clients that ask for much and read
// nothing. They take little memory and delay nobody.
func TestSlowReadersTakeLittleAndDelayNobody(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--write-timeout", "3600")
		witness := f.dial()
		one := len(witness.do("COMMAND", "DOCS"))
		before := heapBytes()
		const readers = 50
		conns := make([]net.Conn, readers)
		for i := range conns {
			c, err := net.Dial("tcp", f.addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			require.NoError(t, c.(*net.TCPConn).SetReadBuffer(16<<10))
			_, err = io.WriteString(c, strings.Repeat("COMMAND DOCS\r\n", 1000))
			require.NoError(t, err)
			conns[i] = c
		}
		for range 100 {
			require.Equal(t, "+PONG\r\n", witness.do("PING"))
			require.LessOrEqual(t, f.Stats().Pending, int64(readers*(256<<10+64<<10+one)))
		}
		eventually(t, "all are stuck", func() bool {
			out := f.Stats().BytesOut
			return heapBytes() < before+50<<20 && f.Stats().BytesOut == out
		})
		require.Less(t, f.Stats().BytesOut, int64(readers*1000*one), "somebody read after all")
		require.NotEqual(t, "0", witness.info("mem_clients_normal"))
		runtime.KeepAlive(conns)
	})
}

// TestTooLongRepliesAreRefused asks for a reply longer than the backlog, which is sent. A
// still longer one is refused with an error. A transaction whose replies are too long
// runs to its end, and its client is closed.
func TestTooLongRepliesAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 70 MiB of keys")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		long := strings.Repeat("k", 16<<10-8)
		fill := func(from, to int) {
			for i := from; i < to; i++ {
				c.command("CL.THROTTLE", fmt.Sprintf("%08d%s", i, long), "1", "1", "3600")
				c.expect(five(0, 2, 1, -1, 3600))
			}
		}
		fill(0, 1000)
		require.Len(t, c.do("KEYS", "*"), len("*1000\r\n")+1000*len(bulk("00000000"+long)))
		fill(1000, 4300)
		const tooLong = "-ERR the reply is too long, use SCAN with a smaller COUNT\r\n"
		require.Equal(t, tooLong, c.do("KEYS", "*"))
		require.Equal(t, tooLong, c.do("SCAN", "0", "COUNT", "1000000"))
		require.Contains(t, c.do("SCAN", "0", "COUNT", "1000"), "*2\r\n")
		c.send("MULTI\r\nCL.THROTTLE after 1 1 1\r\nKEYS 00000*\r\nKEYS 00001*\r\nKEYS 00002*\r\nKEYS 00003*\r\nKEYS 00004*\r\nKEYS 00000*\r\nKEYS 00001*\r\nCL.THROTTLE after 1 1 1\r\nEXEC\r\nPING\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		c.expectEnd()
		require.Equal(t, five(1, 2, 0, 1, 2), f.dial().do("CL.THROTTLE", "after", "1", "1", "1"), "the transaction ran to its end")
	})
}

// requireTurns sends a packet of n times the same command, over every transport and as
// often as it takes until one of the turns that it takes has been cut, and wants none
// longer than most commands, and those that were cut no shorter.
func requireTurns(t *testing.T, name []byte, n, most int) {
	t.Helper()
	eachTransport(t, func(t *testing.T, kind string) {
		e := startEngine(t, kind, func(st env.Store) env.Store { return st })
		var cut, longer, shorter atomic.Int64
		e.watch(func(turn transport.Turn) {
			switch {
			case turn.Consumed > most*len(name):
				longer.Add(1)
			case turn.Next == transport.Again && turn.Consumed < most*len(name):
				shorter.Add(1)
			case turn.Next == transport.Again:
				cut.Add(1)
			}
		})
		c := e.dial()
		packet := strings.Repeat(string(name), n)
		for round := 0; cut.Load() == 0; round++ {
			require.Less(t, round, 1000, "no turn was cut")
			var sending sync.WaitGroup
			sending.Go(func() { _, _ = io.WriteString(c.Conn, packet) }) // what fails is not answered
			want := c.reply()
			for range n - 1 {
				require.Equal(t, want, c.reply())
			}
			sending.Wait()
		}
		require.Zero(t, longer.Load())
		require.Zero(t, shorter.Load())
	})
}

// TestLongPipelineIsDividedIntoTurns sends a long pipeline. It is divided into turns, so
// that others run in between.
func TestLongPipelineIsDividedIntoTurns(t *testing.T) {
	b := newBench(t)
	ping := []byte("PING\r\n")
	turn := b.session.Feed(b.worker, bytes.Repeat(ping, 10_000), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 1024*len(ping), turn.Consumed)
	requireTurns(t, ping, 10_000, 1024)

	echo := frame("ECHO", strings.Repeat("x", 10_000))
	turn = b.session.Feed(b.worker, bytes.Repeat(echo, 100), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 7*len(echo), turn.Consumed)
}

// TestLongPipelineDelaysNobody has one client keep a pipeline of 10,000 commands full.
// Another client gets its replies all the time.
func TestLongPipelineDelaysNobody(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--io-threads", "1")
		greedy := f.dial()
		batch := strings.Repeat("*1\r\n$4\r\nPING\r\n", 10_000)
		var stop atomic.Bool
		var both sync.WaitGroup
		var sent, answered int
		both.Go(func() {
			for ; !stop.Load(); sent++ {
				if _, err := io.WriteString(greedy.Conn, batch); err != nil {
					break
				}
			}
			_ = greedy.Conn.(*net.TCPConn).CloseWrite() // ends the other half
		})
		both.Go(func() {
			buf := make([]byte, 64<<10)
			for {
				n, err := greedy.Read(buf)
				answered += n
				if err != nil {
					return
				}
			}
		})
		other := f.dial()
		eventually(t, "the pipeline flows", func() bool { return f.Stats().BytesOut > 2*1024*int64(len("+PONG\r\n")) })
		for range 200 {
			require.Equal(t, "+PONG\r\n", other.do("PING"))
		}
		calls, err := strconv.Atoi(strings.Split(strings.TrimPrefix(other.info("cmdstat_ping"), "calls="), ",")[0])
		require.NoError(t, err)
		stop.Store(true)
		both.Wait()
		require.Greater(t, calls, 1200, "there was no pipeline to be delayed by")
		require.Equal(t, sent*10_000*len("+PONG\r\n"), answered)
	})
}

// TestTurnsCountWork sends commands that look at many keys and reply little. Their turns
// are no longer than those of commands that reply much.
func TestTurnsCountWork(t *testing.T) {
	b := newBench(t)
	scan := frame("SCAN", "0", "COUNT", "1000", "MATCH", "nothing")
	turn := b.session.Feed(b.worker, bytes.Repeat(scan, 100), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 9*len(scan), turn.Consumed)
	requireTurns(t, scan, 100, 9)

	wide := frame(append([]string{"EXISTS"}, replicate("k", 4999)...)...)
	turn = b.another().session.Feed(b.worker, bytes.Repeat(wide, 10), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 2*len(wide), turn.Consumed)
}

// TestListOfManyClientsIsWholeAndNamesAreBounded lists 301 clients, which runs in the
// background. The names in the list are bounded.
func TestListOfManyClientsIsWholeAndNamesAreBounded(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		name := strings.Repeat("n", 1<<10)
		require.Equal(t, "+OK\r\n", c.do("CLIENT", "SETNAME", name))
		require.Contains(t, c.do("CLIENT", "SETNAME", name+"n"), "-ERR Client names cannot contain")
		for range 300 {
			session, _ := f.Engine().Open(quietPeer{})
			require.NotNil(t, session)
		}
		c.send("CLIENT LIST\r\nPING\r\n")
		list := bulkText(t, c.reply())
		require.Equal(t, 301, strings.Count(list, "\n"))
		require.Contains(t, list, " name="+name+" ")
		c.expect("+PONG\r\n")
		require.Equal(t, "301", c.info("connected_clients"))
	})
}

// TestMaxClientsPerIPCountsOneAddressOnly bounds the clients of one address. Those of
// other addresses and of unix sockets do not count.
func TestMaxClientsPerIPCountsOneAddressOnly(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--max-clients-per-ip", "2", "--requirepass", "x")
		first, second := f.dial(), f.dial()
		require.Equal(t, "+OK\r\n", first.do("AUTH", "x"))
		require.Equal(t, "+OK\r\n", second.do("AUTH", "x"))
		refused := f.dial()
		refused.expect(maxClientsText)
		refused.expectEnd()
		for range 3 {
			socket, _ := f.Engine().Open(fakePeer{remote: &net.UnixAddr{Name: "s", Net: "unix"}})
			require.NotNil(t, socket)
		}
		from := fakePeer{remote: &net.TCPAddr{IP: net.ParseIP("192.0.2.2"), Port: 1}}
		for range 2 {
			other, _ := f.Engine().Open(from)
			require.NotNil(t, other)
		}
		other, rejection := f.Engine().Open(from)
		require.Nil(t, other)
		require.Equal(t, maxClientsText, string(rejection))

		require.Equal(t, "+OK\r\n", first.do("QUIT"))
		first.expectEnd()
		eventually(t, "there is room", func() bool {
			c := f.dial()
			_, _ = io.WriteString(c.Conn, "AUTH x\r\n") // a refusal may have closed it already
			text, err := c.r.ReadString('\n')
			if err != nil || text != "+OK\r\n" {
				_ = c.Close()
				return false
			}
			return true
		})
		require.Equal(t, "+PONG\r\n", second.do("PING"))
	})
}
