package limiters_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/simnet"
)

// TestBlockIsFIFO: clients that wait under a key pass in the order of their arrival, one for each
// free unit. Clients that wait under other keys do not delay them.
func TestBlockIsFIFO(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		other := f.Dial()
		other.FillWindow()
		conns := w.Queue(f, 5, inproc.WaitWindow+"PING behind\r\n")
		require.Equal(t, "5", other.Info("blocked_clients"))
		require.Equal(t, 1, clock.Timers(), "only the first has a timer")
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), other.Do("SW.ALLOW", "j", "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0"))
		require.Equal(t, inproc.Five(1, 1, 0, 60, 60), other.Do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		w.Advance(time.Minute - 1)
		inproc.Silent(conns...)
		w.Advance(1)
		for i, c := range conns {
			c.Expect(inproc.Five(0, 1, 0, -1, 60), inproc.Bulk("behind"))
			inproc.Silent(conns[i+1:]...)
			w.Advance(time.Minute)
		}
		w.Settle()
		require.Equal(t, "0", other.Info("blocked_clients"))
		require.Zero(t, clock.Timers())
	})
}

// TestBlockFIFOIsNotByQuantity: a call for few units does not overtake an earlier call for many,
// but a call without BLOCK may take what is available.
func TestBlockFIFOIsNotByQuantity(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Send("SW.ALLOW k 10 60 8 FIXED ANCHOR FIRST\r\n")
		c.Expect(inproc.Five(0, 10, 2, -1, 60))
		large := w.Queue(f, 1, "SW.ALLOW k 10 60 10 FIXED ANCHOR FIRST BLOCK 0\r\n")[0]
		small := w.Queue(f, 1, "SW.ALLOW k 10 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n")[0]
		c.Send("SW.ALLOW k 10 60 2 FIXED ANCHOR FIRST\r\n")
		c.Expect(inproc.Five(0, 10, 0, -1, 60))
		inproc.Silent(large, small)
		w.Advance(time.Minute)
		large.Expect(inproc.Five(0, 10, 0, -1, 60))
		small.Silent()
		w.Advance(time.Minute)
		small.Expect(inproc.Five(0, 10, 9, -1, 60))
	})
}

// TestBlockTimeout: the reply at the timeout is the refusal that holds by then, the next client
// becomes the first, and the unit of the timeout is the time unit of the call.
func TestBlockTimeout(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		c.FillWindow()
		first := w.Queue(f, 1, "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 1.5\r\n")[0]
		second := w.Queue(f, 1, "SW.ALLOW k 1 60000 1 FIXED ANCHOR FIRST MS BLOCK 30000\r\n")[0]
		third := w.Queue(f, 1, inproc.WaitWindow)[0]
		w.Advance(1499 * time.Millisecond)
		inproc.Silent(first, second, third)
		w.Advance(time.Millisecond)
		first.Expect(inproc.Five(1, 1, 0, 59, 59))
		w.Advance(28_500 * time.Millisecond)
		second.Expect(inproc.Five(1, 1, 0, 30_000, 30_000))
		third.Silent()
		w.Advance(30 * time.Second)
		third.Expect(inproc.Five(0, 1, 0, -1, 60))
		require.Zero(t, f.Keyspace().Waiting())
		w.Settle()
		require.Zero(t, clock.Timers())
		require.Contains(t, c.Do("RL.TOP"), inproc.Bulk("k"))
		require.Contains(t, c.Do("CC.ACQUIRE", "cc", "1", "60", "a"), ":0\r\n")
		waiter := w.Queue(f, 1, "CC.ACQUIRE cc 1 60 b BLOCK 2\r\n")[0]
		w.Advance(2 * time.Second)
		waiter.Expect(inproc.Five(1, 1, 0, 58, 58))
	})
}

// TestBlockAnswersAtOnce: calls that can never pass, that only look, that return units, or that
// pass now are answered at once.
func TestBlockAnswersAtOnce(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		c.FillWindow()
		for _, step := range [][2]string{
			{"SW.ALLOW k 1 60 2 FIXED ANCHOR FIRST BLOCK 0", inproc.Five(1, 1, 0, -1, 60)},
			{"SW.ALLOW k 1 60 0 FIXED ANCHOR FIRST BLOCK 0", inproc.Five(0, 1, 0, -1, 60)},
			{"SW.ALLOW new 1 60 -5 FIXED ANCHOR FIRST BLOCK 0", inproc.Five(0, 1, 1, -1, 0)},
			{"SW.ALLOW k 1 60 PEEK BLOCK 0", "-ERR syntax error near 'BLOCK'\r\n"},
			{"SW.ALLOW k 1 60 BLOCK -1", "-ERR timeout is negative\r\n"},
			{"SW.ALLOW k 1 60 BLOCK x", "-ERR timeout is not a float or out of range\r\n"},
			{"SW.ALLOW k 1 60 BLOCK", "-ERR syntax error near 'BLOCK'\r\n"},
			{"TB.ACQUIRE b 1 1 60 2 BLOCK 0", inproc.Five(1, 1, 1, -1, 0)},
			{"TB.ACQUIRE b 5 1 60 1 BLOCK 0", inproc.Five(0, 5, 4, -1, 60)},
			{"TB.ACQUIRE b 5 1 60 5 BLOCK 59", inproc.Five(1, 5, 4, 1, 60)},
			{"TB.ACQUIRE b 5 1 60 0 BLOCK 0", inproc.Five(0, 5, 4, -1, 60)},
			{"TB.ACQUIRE b 5 1 60 -1 BLOCK 0", inproc.Five(0, 5, 5, -1, 0)},
			{"CC.ACQUIRE c 1 60 a BLOCK 0", inproc.Five(0, 1, 0, -1, 60)},
			{"CC.ACQUIRE c 1 60 a BLOCK 0", inproc.Five(0, 1, 0, -1, 60)},
			{"CC.ACQUIRE c 1 60 b PEEK BLOCK 0", "-ERR syntax error near 'BLOCK'\r\n"},
			{"TYPE k", "+ratelimit\r\n"},
			{"TB.ACQUIRE k 1 1 1 1 BLOCK 0", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
			{"CC.ACQUIRE k 1 60 a BLOCK 0", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
		} {
			require.Equal(t, step[1], c.Do(strings.Fields(step[0])...), step[0])
		}
		require.Zero(t, f.Keyspace().Waiting())
		require.Zero(t, clock.Timers())
	})
}

// TestBlockInsideMulti: no call waits inside a transaction. TB.ACQUIRE answers as with WAIT 0,
// and the other commands as without BLOCK.
func TestBlockInsideMulti(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		c.FillWindow()
		c.Send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.Expect(inproc.Five(0, 1, 0, -1, 60), inproc.Five(0, 1, 0, -1, 60))
		c.Send("MULTI\r\n" + inproc.WaitWindow + "TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\nCC.ACQUIRE c 1 60 b BLOCK 0\r\nTB.ACQUIRE q 1 1 60 1 LEAKY BLOCK 0\r\nEXEC\r\nPING\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n",
			inproc.Array(inproc.Five(1, 1, 0, 60, 60), inproc.Five(1, 1, 0, 60, 60), inproc.Five(1, 1, 0, 60, 60), inproc.Five(0, 1, 0, -1, 60)), "+PONG\r\n")
		require.Zero(t, f.Keyspace().Waiting())
		require.Zero(t, clock.Timers())
	})
}

// TestWhateverMakesRoomWakesTheFirst: each way of making room wakes the first client in the queue
// at once.
func TestWhateverMakesRoomWakesTheFirst(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		for _, wake := range []string{
			"DEL k", "UNLINK k", "FLUSHDB", "FLUSHALL", "RENAME k elsewhere", "RENAMENX k nowhere",
			"SW.ALLOW k 1 60 -1 FIXED ANCHOR FIRST", "EXPIRE k -1", "PEXPIREAT k 1", "EXPIRE k 0",
		} {
			c.Do("FLUSHALL")
			c.FillWindow()
			conns := w.Queue(f, 2, inproc.WaitWindow)
			c.Do(strings.Fields(wake)...)
			conns[0].Expect(inproc.Five(0, 1, 0, -1, 60))
			inproc.Silent(conns[1])
			c.Do("DEL", "nowhere")
			c.Send("MULTI\r\n" + wake + "\r\nPING\r\nEXEC\r\n")
			c.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
			require.Contains(t, c.Reply(), "+PONG\r\n", wake)
			conns[1].Expect(inproc.Five(0, 1, 0, -1, 60))
		}
		c.Send("FLUSHALL\r\nCC.ACQUIRE cc 1 60 a\r\n")
		c.Expect("+OK\r\n", inproc.Five(0, 1, 0, -1, 60))
		conns := w.Queue(f, 2, "CC.ACQUIRE cc 1 60 b BLOCK 0\r\n")
		require.Equal(t, ":1\r\n", c.Do("CC.RELEASE", "cc", "a"))
		conns[0].Expect(inproc.Five(0, 1, 0, -1, 60))
		conns[1].Expect(inproc.Five(0, 1, 0, -1, 60)) // the same member, which holds the place already

		// An expired key also makes room, whether a read or the sweep finds it expired.
		c.Do("FLUSHALL")
		c.FillWindow()
		require.Equal(t, ":1\r\n", c.Do("EXPIRE", "k", "5"))
		waiter := w.Queue(f, 1, inproc.WaitWindow)[0]
		w.Advance(5 * time.Second)
		f.Keyspace().Sweep(1 << 20)
		waiter.Expect(inproc.Five(0, 1, 0, -1, 60))
	})
}

// TestWakesDoNotPileUp: the first client keeps a single timer, however often it is woken without
// room.
func TestWakesDoNotPileUp(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		c.Send("SW.ALLOW k 10 60 10 FIXED ANCHOR FIRST\r\n")
		c.Expect(inproc.Five(0, 10, 0, -1, 60))
		waiter := w.Queue(f, 1, "SW.ALLOW k 10 60 10 FIXED ANCHOR FIRST BLOCK 0\r\n")[0]
		for range 500 {
			c.Send("SW.ALLOW k 10 60 -1 FIXED ANCHOR FIRST\r\nSW.ALLOW k 10 60 1 FIXED ANCHOR FIRST\r\n")
		}
		for range 500 {
			c.Expect(inproc.Five(0, 10, 1, -1, 60), inproc.Five(0, 10, 0, -1, 60))
		}
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		waiter.Silent()
		w.Advance(time.Minute)
		waiter.Expect(inproc.Five(0, 10, 0, -1, 60))
	})
}

// TestBlockedClientLeaves: when a blocked client closes the connection, closes its half of it or
// is killed, its place in the queue is freed and its reservation is returned. Later reservations
// stay.
func TestBlockedClientLeaves(t *testing.T) {
	leave := map[string]func(admin, c *inproc.Client, id string){
		"close":      func(_, c *inproc.Client, _ string) { require.NoError(t, c.Close()) },
		"half close": func(_, c *inproc.Client, _ string) { require.NoError(t, c.Conn.(*simnet.Conn).CloseWrite()) },
		"kill": func(admin, _ *inproc.Client, id string) {
			require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "ID", id))
		},
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for name, away := range leave {
			f, clock := w.StartTimed()
			c := f.Dial()
			c.FillWindow()
			conns := w.Queue(f, 3, inproc.WaitWindow)
			ids := []string{"2", "3", "4"}
			away(c, conns[0], ids[0])
			w.Settle()
			require.Equal(t, 2, f.Keyspace().Waiting(), name)
			require.Equal(t, 1, clock.Timers(), "the next has a timer")
			away(c, conns[2], ids[2])
			w.Settle()
			require.Equal(t, 1, f.Keyspace().Waiting(), name)
			w.Advance(time.Minute)
			conns[1].Expect(inproc.Five(0, 1, 0, -1, 60))

			require.Equal(t, inproc.Five(0, 1, 0, -1, 10), c.Do("TB.ACQUIRE", "b", "1", "1", "10"))
			reserved := []*inproc.Client{f.Dial(), f.Dial(), f.Dial()}
			for i, r := range reserved {
				ids[i] = r.ID()
				r.Send("TB.ACQUIRE b 1 1 10 1 BLOCK 0\r\n")
				w.Settle()
				require.Equal(t, i+1, clock.Timers())
			}
			require.Equal(t, inproc.Five(1, 1, 0, 40, 40), c.Do("TB.ACQUIRE", "b", "1", "1", "10"))
			away(c, reserved[0], ids[0])
			w.Settle()
			require.Equal(t, 2, clock.Timers(), name)
			require.Equal(t, inproc.Five(1, 1, 0, 30, 30), c.Do("TB.ACQUIRE", "b", "1", "1", "10"), "its token is back")
			w.Advance(10 * time.Second)
			inproc.Silent(reserved[1:]...)
			w.Advance(10 * time.Second)
			reserved[1].Expect(inproc.Five(0, 1, 0, -1, 10))
			w.Advance(10 * time.Second)
			require.Regexp(t, `^\*5\r\n:0\r\n:1\r\n:[01]\r\n:-1\r\n:\d+\r\n$`, reserved[2].Reply())
		}
	})
}

// TestUnblock: CLIENT UNBLOCK answers as the timeout would, or with an error, and returns the
// reserved units.
func TestUnblock(t *testing.T) {
	const unblocked = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		c.FillWindow()
		c.Send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.Expect(inproc.Five(0, 1, 0, -1, 60), inproc.Five(0, 1, 0, -1, 60))
		for _, wait := range []string{inproc.WaitWindow, "TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n", "CC.ACQUIRE c 1 60 b BLOCK 0\r\n"} {
			for _, how := range []string{"", "TIMEOUT", "error"} {
				waiter := f.Dial()
				id := waiter.ID()
				waiter.Send(wait + "PING\r\n")
				// A client can be unblocked only after its timer has started.
				w.Settle()
				_, waits := f.Engine().CountClients()
				require.EqualValues(t, 1, waits)
				require.Equal(t, ":1\r\n", c.Do(strings.Fields("CLIENT UNBLOCK "+id+" "+how)...))
				if how == "error" {
					waiter.Expect(unblocked)
				} else {
					waiter.Expect(inproc.Five(1, 1, 0, 60, 60))
				}
				waiter.Expect("+PONG\r\n")
				require.Equal(t, ":0\r\n", c.Do("CLIENT", "UNBLOCK", id))
				w.Settle()
				require.Zero(t, clock.Timers())
				require.Zero(t, f.Keyspace().Waiting())
				require.NoError(t, waiter.Close())
			}
		}
		require.Equal(t, inproc.Five(1, 1, 0, 60, 60), c.Do("TB.ACQUIRE", "b", "1", "1", "60"), "all reservations were given back")
	})
}

// TestStopWakesEverybody: a server that stops answers all waiting clients, whatever their
// timeout, and lets no further client wait.
func TestStopWakesEverybody(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		c.FillWindow()
		c.Send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.Expect(inproc.Five(0, 1, 0, -1, 60), inproc.Five(0, 1, 0, -1, 60))
		conns := w.Queue(f, 3, inproc.WaitWindow)
		conns = append(conns, w.Queue(f, 1, "CC.ACQUIRE c 1 60 b BLOCK 0\r\n")...)
		reserved := f.Dial()
		reserved.Send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		w.Settle()
		require.Equal(t, 3, clock.Timers())
		require.NoError(t, f.Stop())
		for _, c := range append(conns, reserved) {
			c.Expect(inproc.Five(1, 1, 0, 60, 60))
			c.ExpectEnd()
		}
		require.Zero(t, clock.Timers())
	})
}

// TestGrantSurvivesAnotherType: a grant of tokens stays valid if the key has another type by the
// time the tokens are available. A client that only waits for room gets an error.
func TestGrantSurvivesAnotherType(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("TB.ACQUIRE", "b", "1", "1", "60"))
		granted := f.Dial()
		granted.Send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		c.Send("DEL b\r\nCL.THROTTLE b 1 1 600\r\n")
		c.Expect(":1\r\n", inproc.Five(0, 2, 1, -1, 600))
		w.Advance(time.Minute)
		require.Contains(t, granted.Reply(), "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n")

		c.FillWindow()
		waiter := w.Queue(f, 1, inproc.WaitWindow)[0]
		c.Send("MULTI\r\nDEL k\r\nCL.THROTTLE k 1 1 600\r\nEXEC\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", inproc.Array(":1\r\n", inproc.Five(0, 2, 1, -1, 600)))
		waiter.Expect("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
	})
}

// TestCrashWhileBlocked: a client that waits in BLOCK when the process dies has been charged
// nothing. A client whose call passed has been charged once.
func TestCrashWhileBlocked(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes")
		c, waits := f.Dial(), f.Dial()
		call := []string{"SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"}
		look := []string{"SW.ALLOW", "k", "1", "60", "0", "FIXED", "ANCHOR", "FIRST"}
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do(call...))
		waits.Command(append(call, "BLOCK", "0")...)
		w.Settle()
		require.Equal(t, "1", c.Info("blocked_clients"), "parked")
		before := f.Left()
		w.Advance(time.Minute)
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), waits.Reply())
		let := f.Left()

		require.Equal(t, inproc.Five(0, 1, 1, -1, 0), w.StartOn(before, "--appendonly", "yes").Dial().Do(look...))
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), w.StartOn(let, "--appendonly", "yes").Dial().Do(look...))
	})
}

// TestNoRoomForAnotherWait: a wait that would exceed the memory bound for all clients is answered
// as if its timeout had passed, and its reservation is returned.
func TestNoRoomForAnotherWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--maxmemory-clients", "20kb")
		c, key := f.Dial(), strings.Repeat("k", 16_000)
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("SW.ALLOW", key, "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		require.Equal(t, inproc.Five(1, 1, 0, 60, 60), c.Do("SW.ALLOW", key, "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0"))
		require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
		for range 3 { // the first call that finds room passes as always
			c.Command("CC.ACQUIRE", key, "1", "60", "a", "BLOCK", "0")
			require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Reply())
		}
		require.Equal(t, inproc.Five(1, 1, 0, 60, 60), c.Do("CC.ACQUIRE", key, "1", "60", "b", "BLOCK", "0"))
		require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("TB.ACQUIRE", key, "1", "1", "60"))
		for range 3 {
			require.Equal(t, inproc.Five(1, 1, 0, 60, 60), c.Do("TB.ACQUIRE", key, "1", "1", "60", "1", "BLOCK", "0"))
		}
		require.Zero(t, f.Keyspace().Waiting())
		require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", c.Do("BLPOP", key+"2", "0"))
		require.Equal(t, "0", c.Info("blocked_clients"))
		waits := f.Dial()
		waits.Command("BLPOP", "short", "0")
		w.Settle()
		require.Equal(t, "1", c.Info("blocked_clients"))
	})
}

// TestHolderIsNotRefreshedByAReplica: a wait that ends because the server becomes a replica
// changes nothing, although its member has acquired a place through another call meanwhile.
func TestHolderIsNotRefreshedByAReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("CC.ACQUIRE", "c", "1", "60", "a"))
		w.Queue(f, 1, "CC.ACQUIRE c 1 60 b BLOCK 0\r\n")
		late := w.Queue(f, 1, "CC.ACQUIRE c 2 60 d BLOCK 0\r\n")[0]
		require.Equal(t, inproc.Five(0, 2, 0, -1, 60), c.Do("CC.ACQUIRE", "c", "2", "60", "d"))
		w.Advance(5 * time.Second)
		require.Equal(t, inproc.OK, c.Do("REPLICAOF", "127.0.0.99", "6379"))
		require.Regexp(t, "^-(UNBLOCKED|READONLY) ", late.Reply(), "an attempt to serve it may come before the end of all waits")
		require.Equal(t, ":55000\r\n", c.Do("PTTL", "c"))
	})
}

// TestHolderWaitsForNobody: a member that holds a place renews its lease at once, although other
// clients wait for a place before it. The same holds for a member that acquires a place through
// another call while it waits.
func TestHolderWaitsForNobody(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("CC.ACQUIRE", "c", "1", "60", "a"))
		waiter := w.Queue(f, 1, "CC.ACQUIRE c 1 60 b BLOCK 20\r\n")[0]
		w.Advance(5 * time.Second)
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("CC.ACQUIRE", "c", "1", "60", "a", "BLOCK", "1"))
		late := w.Queue(f, 1, "CC.ACQUIRE c 2 60 d BLOCK 2\r\n")[0] // behind b, although there is room for d
		require.Equal(t, inproc.Five(0, 2, 0, -1, 60), c.Do("CC.ACQUIRE", "c", "2", "60", "d"))
		w.Advance(2 * time.Second)
		late.Expect(inproc.Five(0, 2, 0, -1, 60))
		waiter.Silent()
		w.Advance(13 * time.Second)
		waiter.Expect(inproc.Five(1, 1, 0, 47, 47))
	})
}
