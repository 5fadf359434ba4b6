package transport_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// The tests in this file cover the interaction of a transport with the sessions of the server. The
// effects of commands are tested in their packages.

// TestLargeRepliesAreReservedFirst: a reply that copies a lot is made only while there is memory
// for it, however many clients request it and do not read, and a client that reads gets its reply.
func TestLargeRepliesAreReservedFirst(t *testing.T) {
	const unread, size = 10, inproc.ShortValues * inproc.ShortSize
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind, "--maxmemory", "100mb", "--maxmemory-clients", "6mb", "--write-timeout", "3600")
		witness := s.Dial()
		mget := string(inproc.Encode(nil, append([]string{"MGET"}, witness.FillShort()...)...))
		for name, packet := range map[string]string{"MGET": mget, "EXEC MGET": "MULTI\r\n" + mget + "EXEC\r\n"} {
			t.Run(name, func(t *testing.T) {
				var mute []*inproc.Client
				for range unread {
					c := slowly(t, s.Dial())
					c.Send(packet)
					mute = append(mute, c)
				}
				inproc.Await(t, "some wait for the memory of others' replies", s.Engine().Pressed)
				require.Less(t, s.Engine().LargeReplies(), int64(3*size), "there is room for one")
				require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(4*size))
				reader := s.Dial()
				reader.Send(packet)
				for _, c := range mute {
					require.NoError(t, c.Close())
				}
				got := reader.Reply()
				for got == inproc.OK || got == inproc.Queued {
					got = reader.Reply()
				}
				require.Greater(t, len(got), size)
				inproc.Await(t, "all is given back", func() bool { return s.Engine().LargeReplies() == 0 })
				require.Zero(t, witness.InfoNumber("evicted_clients"))
			})
		}
	})
}

// TestRefusedValueIsNotKept: while a value that is too long arrives, none of it is in memory.
func TestRefusedValueIsNotKept(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind, "--proto-max-bulk-len", "1mb")
		c, witness := s.Dial(), s.Dial()
		c.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10000000\r\n" + strings.Repeat("v", 5*megabyte))
		inproc.Await(t, "it has been thrown away", func() bool { return witness.InfoNumber("total_net_input_bytes") > 4*megabyte })
		require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(megabyte))
		c.Send(strings.Repeat("v", 5*megabyte) + "\r\n")
		require.Contains(t, c.Reply(), "an argument of 10000000 bytes")
	})
}

// TestClientMemoryCountsWhatTheTransportHolds: unfinished commands and unread replies count, and
// the clients that have most of them are closed.
func TestClientMemoryCountsWhatTheTransportHolds(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind, "--write-timeout", "3600")
		witness := s.Dial()
		require.Equal(t, inproc.OK, witness.Do("CLIENT", "NO-EVICT", "ON"))
		name := func(name string) *inproc.Client {
			c := slowly(t, s.Dial())
			require.Equal(t, inproc.OK, c.Do("CLIENT", "SETNAME", name))
			return c
		}
		input, output := name("input"), name("output")
		input.Send("*2\r\n$4\r\nECHO\r\n$1000000\r\n" + strings.Repeat("x", 500_000))
		output.Send(strings.Repeat("COMMAND DOCS\r\n", 1000))
		inproc.Await(t, "all of the input has come", func() bool { return witness.Listed("input", "qbuf") >= 500_000 })
		for name, field := range map[string]string{"input": "qbuf", "output": "omem"} {
			inproc.Await(t, name, func() bool { return witness.Listed(name, field) > 0 && witness.Listed(name, "tot-mem") > 0 })
		}
		require.Equal(t, inproc.OK, witness.Do("CONFIG", "SET", "maxmemory-clients", "1"))
		inproc.Await(t, "the one is closed whose command is not refused", func() bool { return witness.InfoNumber("connected_clients") == 2 })
		require.EqualValues(t, 1, witness.InfoNumber("evicted_clients"))
		input.Send(strings.Repeat("x", 500_000) + "\r\nPING\r\n")
		input.Expect(inproc.OOM, inproc.Pong)
	})
}

// TestWritersAreRefusedNotClosed: clients that send long commands, more than all clients together
// may hold, get the error of full memory or their reply, and keep their connection.
func TestWritersAreRefusedNotClosed(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		const writers = 8
		s := inproc.Serve(t, kind, "--maxmemory-clients", "3mb")
		witness := s.Dial()
		require.Equal(t, inproc.OK, witness.Do("CLIENT", "NO-EVICT", "ON"))
		value := strings.Repeat("v", 1_000_000)
		var all []*inproc.Client
		for i := range writers {
			c := s.Dial()
			c.Send("*3\r\n$3\r\nSET\r\n$1\r\n" + strconv.Itoa(i) + "\r\n$1000000\r\n" + value[:900_000])
			all = append(all, c)
		}
		inproc.Await(t, "what they hold is within the bound", func() bool {
			return witness.InfoNumber("total_net_input_bytes") > writers*900_000 && witness.InfoNumber("mem_clients_normal") < 3<<20
		})
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

// TestWaitersThatLeave: blocked clients that disconnect at the same time, or are killed, take
// nothing. The next client is served, and one that is still blocked when the server stops gets the
// reply of a timeout.
func TestWaitersThatLeave(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind)
		admin := s.Dial()
		waiting := func(n int) {
			t.Helper()
			inproc.Await(t, "they wait", func() bool { return admin.InfoNumber("blocked_clients") == int64(n) })
		}
		var gone []*inproc.Client
		for i := range 100 {
			c := s.Dial()
			c.Send("BLPOP l m 0\r\nPING\r\n")
			gone = append(gone, c)
			waiting(i + 1)
		}
		killed, next, last := s.Dial(), s.Dial(), s.Dial()
		id := killed.ID()
		for i, c := range []*inproc.Client{killed, next, last} {
			c.Send("BLPOP l m 0\r\nPING\r\n")
			waiting(len(gone) + i + 1)
		}
		var leaving sync.WaitGroup
		for _, c := range gone {
			leaving.Go(func() { _ = c.Close() })
		}
		leaving.Wait()
		waiting(3)
		require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "ID", id))
		waiting(2)
		killed.ExpectEnd()
		require.Equal(t, ":1\r\n", admin.Do("RPUSH", "m", "x"))
		next.Expect(inproc.Array(inproc.Bulk("m"), inproc.Bulk("x")), inproc.Pong)
		waiting(1)
		inproc.Await(t, "only the last is left, under two keys", func() bool { return s.Keyspace().PopWaiting() == 2 })
		s.End()
		last.ExpectEnd()
	})
}

// TestBusyScript: while a script does not end, existing and new clients get BUSY and may kill it.
// Later commands of the script's client are then answered, and a client may leave meanwhile.
func TestBusyScript(t *testing.T) {
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind)
		for _, leaves := range []bool{false, true} {
			c, other := s.Dial(), s.Dial()
			require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
			c.Send("EVAL \"while true do end\" 0\r\nSET behind v\r\n")
			s.Clock.AwaitTimers(1)
			other.Command("PING")
			if leaves {
				require.NoError(t, c.Close())
			}
			s.Clock.Advance(5 * time.Second)
			require.Equal(t, busy, other.Reply())
			require.Equal(t, busy, s.Dial().Do("PING"))
			require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
			if !leaves {
				require.Contains(t, c.Reply(), "-ERR Script killed by user with SCRIPT KILL...")
				c.Expect(inproc.OK)
			}
			require.Equal(t, inproc.Pong, other.Do("PING"))
		}
	})
}

// TestScriptsInTheBackgroundKeepTheOrder: many clients run scripts that take longer than a loop
// waits, some of them in pipelines. The replies to later commands come after those of the scripts.
func TestScriptsInTheBackgroundKeepTheOrder(t *testing.T) {
	const turns, clients, rounds = 3000, 6, 3
	script := fmt.Sprintf("local i = 0 repeat i = i + 1 redis.call('incr', KEYS[1]) until i == %d return tonumber(redis.call('get', KEYS[1]))", turns)
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind)
		eval := string(inproc.Encode(nil, "EVAL", script, "1", "n"))
		var all sync.WaitGroup
		for range clients {
			c := s.Dial()
			all.Go(func() {
				for range rounds {
					c.Send(eval + "PING\r\n" + eval + "ECHO x\r\n")
					first := inproc.Numbers(c.Reply())[0]
					c.Expect(inproc.Pong)
					second := inproc.Numbers(c.Reply())[0]
					c.Expect(inproc.Bulk("x"))
					require.Zero(t, first%turns)
					require.Zero(t, second%turns)
					require.Less(t, first, second)
				}
			})
		}
		all.Wait()
		require.Equal(t, inproc.Bulk(fmt.Sprint(turns*clients*rounds*2)), s.Dial().Do("GET", "n"))
	})
}
