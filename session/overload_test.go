package session_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

const (
	maxClientsText = "-ERR max number of clients reached\r\n"
	noAuth         = "-NOAUTH Authentication required.\r\n"
)

// peerFrom is a peer with another address.
type peerFrom struct {
	transport.Peer
	remote net.Addr
}

func (p peerFrom) RemoteAddr() net.Addr { return p.remote }

// TestClientBeyondMaxclientsGetsTheErrorOfRedis connects one client more than maxclients. It gets
// the error of Redis. A client that disconnects makes room.
func TestClientBeyondMaxclientsGetsTheErrorOfRedis(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--maxclients", "50")
		conns := make([]*inproc.Client, 50)
		for i := range conns {
			conns[i] = f.Dial()
			require.Equal(t, "+PONG\r\n", conns[i].Do("PING"))
		}
		for range 500 {
			c := f.Dial()
			c.Expect(maxClientsText)
			c.ExpectEnd()
			require.NoError(t, c.Close())
		}
		require.Equal(t, "500", conns[0].Info("rejected_connections"))
		require.Equal(t, "50", conns[0].Info("connected_clients"))
		require.Equal(t, "+OK\r\n", conns[1].Do("QUIT"))
		conns[1].ExpectEnd()
		require.Equal(t, "+PONG\r\n", f.Dial().Do("PING"), "there is room")
		require.Equal(t, "+OK\r\n", conns[0].Do("CONFIG", "SET", "maxclients", "60"))
		for range 10 {
			require.Equal(t, "+PONG\r\n", f.Dial().Do("PING"))
		}
	})
}

// TestMaxclientsIsTenThousandByDefault connects ten thousand clients and one more.
func TestMaxclientsIsTenThousandByDefault(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for i := range 10_000 - 1 {
			session, rejection := f.Engine().Open(inproc.NewPeer())
			require.NotNil(t, session, "client %d: %s", i, rejection)
		}
		last := f.Dial()
		require.Equal(t, "+PONG\r\n", last.Do("PING"))
		refused := f.Dial()
		refused.Expect(maxClientsText)
		refused.ExpectEnd()
		require.Equal(t, "10000", last.Info("connected_clients"))
	})
}

// TestOnlyRequestsWithinTheLimitsAreAccepted sends the largest key, argument, command and
// number of arguments, and one more of each.
func TestOnlyRequestsWithinTheLimitsAreAccepted(t *testing.T) {
	const keyTooLong = "-ERR key is too long, at most 16384 bytes\r\n"
	key := strings.Repeat("k", 16<<10)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 1), c.Do("CL.THROTTLE", key, "1", "1", "1"))
		for _, args := range [][]string{
			{"CL.THROTTLE", key + "k", "1", "1", "1"},
			{"DEL", "a", "b", key + "k"},
			{"RENAME", "a", key + "k"},
			{"OBJECT", "ENCODING", key + "k"},
			{"RL.MULTI", "2", "a", key + "k", "CL", "1", "1", "1", "CL", "1", "1", "1"},
			{"WATCH", key + "k"},
		} {
			require.Equal(t, keyTooLong, c.Do(args...), args[0])
		}
		require.Equal(t, inproc.Bulk(strings.Repeat("x", 1<<20-100)), c.Do("ECHO", strings.Repeat("x", 1<<20-100)))
		require.Equal(t, "+PONG\r\n", c.Do("PING"))

		many := make([]string, 65536)
		for i := range many {
			many[i] = "k"
		}
		many[0] = "EXISTS"
		require.Equal(t, ":0\r\n", c.Do(many...))
		c.Send("*65537\r\n")
		c.Expect(badMultibulk)
		c.ExpectEnd()

		c = f.Dial()
		c.Send(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n", 512<<20+1))
		c.Expect(badBulk)
		c.ExpectEnd()

		c = f.Dial()
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "client-query-buffer-limit", "1mb"))
		half := strings.Repeat("x", 1<<19)
		c.Send("*3\r\n$6\r\nEXISTS\r\n" + inproc.Bulk(half) + inproc.Bulk(half))
		c.Expect("-ERR the command is longer than client-query-buffer-limit admits, 1048576\r\n")
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
	})
}

// TestConfigSetOfLimitsReachesOpenConnections sets the limits by CONFIG SET. They hold
// for open connections too.
func TestConfigSetOfLimitsReachesOpenConnections(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "proto-max-bulk-len", "2mb", "client-query-buffer-limit", "3mb"))
		large := strings.Repeat("x", 2<<20)
		require.Equal(t, inproc.Bulk(large), c.Do("ECHO", large))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "proto-max-bulk-len", "1kb"))
		require.Equal(t, "-ERR an argument of 1025 bytes is longer than proto-max-bulk-len, 1024\r\n", c.Do("ECHO", large[:1025]))
	})
}

// TestUnauthenticatedClientsHaveLowLimits tests the limits before authentication: 10
// arguments of 4 KiB, 16 KiB in total in both directions, and 10 seconds.
func TestUnauthenticatedClientsHaveLowLimits(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", "sesame")
		open := func() *inproc.Client { return f.Dial() }
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
			c.Expect(want)
			c.ExpectEnd()
		}
		c := open()
		c.Send("*10\r\n$4\r\nPING\r\n" + strings.Repeat("$1\r\nx\r\n", 9))
		c.Expect(noAuth)

		// 16 KiB in and out: a PING costs 6 and its refusal 34.
		c = open()
		go func() { _, _ = io.WriteString(c.Conn, strings.Repeat("PING\r\n", 10_000)) }() // cut short
		answers := 0
		for {
			line, err := c.R.ReadString('\n')
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
		c.ExpectEnd()

		late, idle, known := open(), open(), open()
		require.Equal(t, "+OK\r\n", known.Do("AUTH", "sesame"))
		require.Equal(t, noAuth, late.Do("PING"))
		require.Equal(t, noAuth, idle.Do("PING"))
		w.Advance(9500 * time.Millisecond)
		require.Equal(t, "+OK\r\n", late.Do("AUTH", "sesame"))
		w.Advance(time.Second)
		idle.ExpectEnd()
		require.Equal(t, "+PONG\r\n", late.Do("PING"))
		require.Equal(t, inproc.Bulk(strings.Repeat("x", 100_000)), known.Do("ECHO", strings.Repeat("x", 100_000)))
	})
}

// TestLowLimitsEndWithAuthentication sends commands before and after AUTH in one packet. The
// commands before it do not count for the ones after it.
func TestLowLimitsEndWithAuthentication(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--requirepass", "sesame").Dial()
		large := strings.Repeat("x", 50_000)
		c.Send("PING\r\nAUTH sesame\r\n" + string(inproc.Encode(nil, "ECHO", large)) + "RESET\r\nPING\r\nAUTH sesame\r\n" + string(inproc.Encode(nil, "ECHO", large)))
		c.Expect("-NOAUTH Authentication required.\r\n", "+OK\r\n", inproc.Bulk(large), "+RESET\r\n",
			"-NOAUTH Authentication required.\r\n", "+OK\r\n", inproc.Bulk(large))
	})
}

// TestTooLongRepliesAreRefused asks for a reply longer than the backlog, which is sent. A
// still longer one is refused with an error. A transaction whose replies are too long
// runs to its end, and its client is closed.
func TestTooLongRepliesAreRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		long := strings.Repeat("k", 16<<10-8)
		fill := func(from, to int) {
			for i := from; i < to; i++ {
				c.Command("CL.THROTTLE", fmt.Sprintf("%08d%s", i, long), "1", "1", "3600")
				c.Expect(inproc.Five(0, 2, 1, -1, 3600))
			}
		}
		fill(0, 1000)
		require.Len(t, c.Do("KEYS", "*"), len("*1000\r\n")+1000*len(inproc.Bulk("00000000"+long)))
		fill(1000, 4300)
		const tooLong = "-ERR the reply is too long, use SCAN with a smaller COUNT\r\n"
		require.Equal(t, tooLong, c.Do("KEYS", "*"))
		require.Equal(t, tooLong, c.Do("SCAN", "0", "COUNT", "1000000"))
		require.Contains(t, c.Do("SCAN", "0", "COUNT", "1000"), "*2\r\n")
		c.Send("MULTI\r\nCL.THROTTLE after 1 1 1\r\nKEYS 00000*\r\nKEYS 00001*\r\nKEYS 00002*\r\nKEYS 00003*\r\nKEYS 00004*\r\nKEYS 00000*\r\nKEYS 00001*\r\nCL.THROTTLE after 1 1 1\r\nEXEC\r\nPING\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		c.ExpectEnd()
		require.Equal(t, inproc.Five(1, 2, 0, 1, 2), f.Dial().Do("CL.THROTTLE", "after", "1", "1", "1"), "the transaction ran to its end")
	})
}

// requireTurns feeds a packet of n times the same command in pieces of random size. It requires
// that no turn has more than most commands, and that turns which ended early have exactly that
// many.
func requireTurns(t *testing.T, s *inproc.Fed, command []byte, n, most int) {
	t.Helper()
	packet := bytes.Repeat(command, n)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	fed, arrived, cut := 0, 0, 0
	for fed < len(packet) {
		if arrived < len(packet) {
			arrived = min(len(packet), arrived+1+rng.IntN(64<<10))
		}
		turn := s.Turn(packet[fed:arrived], nil)
		turn.Whole()
		require.LessOrEqual(t, turn.Consumed, most*len(command), "seed %d", seed)
		if turn.Next == transport.Again {
			require.Equal(t, most*len(command), turn.Consumed, "seed %d", seed)
			cut++
		}
		fed += turn.Consumed
	}
	require.Positive(t, cut)
}

// TestLongPipelineIsDividedIntoTurns sends a long pipeline. It is divided into turns, so that other
// clients run in between.
func TestLongPipelineIsDividedIntoTurns(t *testing.T) {
	s := inproc.Open(t)
	ping := []byte("PING\r\n")
	turn := s.Turn(bytes.Repeat(ping, 10_000), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 1024*len(ping), turn.Consumed)
	requireTurns(t, s.Another(), ping, 10_000, 1024)

	echo := inproc.Encode(nil, "ECHO", strings.Repeat("x", 10_000))
	turn = s.Turn(bytes.Repeat(echo, 100), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 7*len(echo), turn.Consumed)
}

// TestTurnsCountWork sends commands that look at many keys and have short replies. Their turns are
// no longer than those of commands with long replies.
func TestTurnsCountWork(t *testing.T) {
	s := inproc.Open(t)
	scan := inproc.Encode(nil, "SCAN", "0", "COUNT", "1000", "MATCH", "nothing")
	turn := s.Turn(bytes.Repeat(scan, 100), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 9*len(scan), turn.Consumed)
	requireTurns(t, s.Another(), scan, 100, 9)

	wide := inproc.Encode(nil, append([]string{"EXISTS"}, slices.Repeat([]string{"k"}, 4999)...)...)
	turn = s.Another().Turn(bytes.Repeat(wide, 10), nil)
	require.Equal(t, transport.Again, turn.Next)
	require.Equal(t, 2*len(wide), turn.Consumed)
}

// TestListOfManyClientsIsWholeAndNamesAreBounded lists 301 clients, which runs in the
// background. The names in the list are bounded.
func TestListOfManyClientsIsWholeAndNamesAreBounded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		name := strings.Repeat("n", 1<<10)
		require.Equal(t, "+OK\r\n", c.Do("CLIENT", "SETNAME", name))
		require.Contains(t, c.Do("CLIENT", "SETNAME", name+"n"), "-ERR Client names cannot be longer than")
		for range 300 {
			session, _ := f.Engine().Open(inproc.NewPeer())
			require.NotNil(t, session)
		}
		c.Send("CLIENT LIST\r\nPING\r\n")
		_, list, _ := strings.Cut(c.Reply(), "\r\n")
		require.Equal(t, 301, strings.Count(strings.TrimSuffix(list, "\r\n"), "\n"))
		require.Contains(t, list, " name="+name+" ")
		c.Expect("+PONG\r\n")
		require.Equal(t, "301", c.Info("connected_clients"))
	})
}

// TestMaxClientsPerIPCountsOneAddressOnly bounds the clients of one address. Those of
// other addresses and of unix sockets do not count.
func TestMaxClientsPerIPCountsOneAddressOnly(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--max-clients-per-ip", "2", "--requirepass", "x")
		first, second := f.Dial(), f.Dial()
		require.Equal(t, "+OK\r\n", first.Do("AUTH", "x"))
		require.Equal(t, "+OK\r\n", second.Do("AUTH", "x"))
		refused := f.Dial()
		refused.Expect(maxClientsText)
		refused.ExpectEnd()
		for range 3 {
			socket, _ := f.Engine().Open(peerFrom{inproc.NewPeer(), &net.UnixAddr{Name: "s", Net: "unix"}})
			require.NotNil(t, socket)
		}
		from := peerFrom{inproc.NewPeer(), &net.TCPAddr{IP: net.ParseIP("192.0.2.2"), Port: 1}}
		for range 2 {
			other, _ := f.Engine().Open(from)
			require.NotNil(t, other)
		}
		other, rejection := f.Engine().Open(from)
		require.Nil(t, other)
		require.Equal(t, maxClientsText, string(rejection))

		require.Equal(t, "+OK\r\n", first.Do("QUIT"))
		first.ExpectEnd()
		require.Equal(t, "+OK\r\n", f.Dial().Do("AUTH", "x"), "there is room")
		require.Equal(t, "+PONG\r\n", second.Do("PING"))
	})
}
