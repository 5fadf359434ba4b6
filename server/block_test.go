package server_test

import (
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A window of one unit a minute that starts with its first hit: whoever comes second
// waits for the end of the minute.
const (
	takeWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n"
	waitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
)

// fill uses the window up.
func (f *fixture) fill(c *client) {
	f.t.Helper()
	c.send(takeWindow)
	c.expect(five(0, 1, 0, -1, 60))
}

// queue has n clients wait for the window, one behind the other.
func (f *fixture) queue(n int, command string) []*client {
	f.t.Helper()
	before := f.Keyspace().Waiting()
	conns := make([]*client, n)
	for i := range conns {
		conns[i] = f.dial()
		conns[i].send(command)
		eventually(f.t, "it waits", func() bool { return f.Keyspace().Waiting() == before+i+1 })
	}
	return conns
}

// silent wants nobody of conns to have been answered. It gives the server no time: what
// could have happened has been waited for by the caller.
func silent(t *testing.T, conns ...*client) {
	t.Helper()
	for i, c := range conns {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Millisecond)))
		_, err := c.r.Peek(1)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout, "client %d was answered", i)
		require.True(t, timeout.Timeout(), "client %d is gone", i)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	}
}

// TestBlockIsFIFO: those who wait under a key pass in the order they came, one for each
// unit; others, under other keys, wait for nobody.
func TestBlockIsFIFO(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		other := f.dial()
		f.fill(other)
		conns := f.queue(5, waitWindow+"PING behind\r\n")
		require.Equal(t, "5", other.info("blocked_clients"))
		require.Equal(t, 1, f.clock.Timers(), "only the first has a timer")
		require.Equal(t, five(0, 1, 0, -1, 60), other.do("SW.ALLOW", "j", "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0"))
		require.Equal(t, five(1, 1, 0, 60, 60), other.do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		f.clock.Advance(time.Minute - 1)
		silent(t, conns...)
		f.clock.Advance(1)
		for i, c := range conns {
			c.expect(five(0, 1, 0, -1, 60), bulk("behind"))
			silent(t, conns[i+1:]...)
			f.clock.Advance(time.Minute)
		}
		eventually(t, "nobody waits", func() bool { return other.info("blocked_clients") == "0" })
		require.Zero(t, f.clock.Timers())
	})
}

// TestBlockFIFOIsNotByQuantity: a small call does not overtake a large one that came
// first, but a call that does not wait may take what there is.
func TestBlockFIFOIsNotByQuantity(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		c.send("SW.ALLOW k 10 60 8 FIXED ANCHOR FIRST\r\n")
		c.expect(five(0, 10, 2, -1, 60))
		large := f.queue(1, "SW.ALLOW k 10 60 10 FIXED ANCHOR FIRST BLOCK 0\r\n")[0]
		small := f.queue(1, "SW.ALLOW k 10 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n")[0]
		c.send("SW.ALLOW k 10 60 2 FIXED ANCHOR FIRST\r\n")
		c.expect(five(0, 10, 0, -1, 60))
		silent(t, large, small)
		f.clock.Advance(time.Minute)
		large.expect(five(0, 10, 0, -1, 60))
		silent(t, small)
		f.clock.Advance(time.Minute)
		small.expect(five(0, 10, 9, -1, 60))
	})
}

// TestBlockTimeout: the answer at the timeout is the refusal as it is by then, whoever
// comes next moves up, and the units of the timeout are those of the call.
func TestBlockTimeout(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		f.fill(c)
		first := f.queue(1, "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 1.5\r\n")[0]
		second := f.queue(1, "SW.ALLOW k 1 60000 1 FIXED ANCHOR FIRST MS BLOCK 30000\r\n")[0]
		third := f.queue(1, waitWindow)[0]
		f.clock.Advance(1499 * time.Millisecond)
		silent(t, first, second, third)
		f.clock.Advance(time.Millisecond)
		first.expect(five(1, 1, 0, 59, 59))
		f.clock.Advance(28_500 * time.Millisecond)
		second.expect(five(1, 1, 0, 30_000, 30_000))
		silent(t, third)
		f.clock.Advance(30 * time.Second)
		third.expect(five(0, 1, 0, -1, 60))
		require.Zero(t, f.Keyspace().Waiting())
		eventually(t, "no timer is left", func() bool { return f.clock.Timers() == 0 })
		require.Contains(t, c.do("RL.TOP"), bulk("k"))
		require.Contains(t, c.do("CC.ACQUIRE", "cc", "1", "60", "a"), ":0\r\n")
		waiter := f.queue(1, "CC.ACQUIRE cc 1 60 b BLOCK 2\r\n")[0]
		f.clock.Advance(2 * time.Second)
		waiter.expect(five(1, 1, 0, 58, 58))
	})
}

// TestBlockAnswersAtOnce: what can never pass, what only looks or gives back, and what
// passes right now.
func TestBlockAnswersAtOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		f.fill(c)
		for _, step := range [][2]string{
			{"SW.ALLOW k 1 60 2 FIXED ANCHOR FIRST BLOCK 0", five(1, 1, 0, -1, 60)},
			{"SW.ALLOW k 1 60 0 FIXED ANCHOR FIRST BLOCK 0", five(0, 1, 0, -1, 60)},
			{"SW.ALLOW new 1 60 -5 FIXED ANCHOR FIRST BLOCK 0", five(0, 1, 1, -1, 0)},
			{"SW.ALLOW k 1 60 PEEK BLOCK 0", "-ERR syntax error near 'BLOCK'\r\n"},
			{"SW.ALLOW k 1 60 BLOCK -1", "-ERR timeout is negative\r\n"},
			{"SW.ALLOW k 1 60 BLOCK x", "-ERR timeout is not a float or out of range\r\n"},
			{"SW.ALLOW k 1 60 BLOCK", "-ERR syntax error near 'BLOCK'\r\n"},
			{"TB.ACQUIRE b 1 1 60 2 BLOCK 0", five(1, 1, 1, -1, 0)},
			{"TB.ACQUIRE b 5 1 60 1 BLOCK 0", five(0, 5, 4, -1, 60)},
			{"TB.ACQUIRE b 5 1 60 5 BLOCK 59", five(1, 5, 4, 1, 60)},
			{"TB.ACQUIRE b 5 1 60 0 BLOCK 0", five(0, 5, 4, -1, 60)},
			{"TB.ACQUIRE b 5 1 60 -1 BLOCK 0", five(0, 5, 5, -1, 0)},
			{"CC.ACQUIRE c 1 60 a BLOCK 0", five(0, 1, 0, -1, 60)},
			{"CC.ACQUIRE c 1 60 a BLOCK 0", five(0, 1, 0, -1, 60)},
			{"CC.ACQUIRE c 1 60 b PEEK BLOCK 0", "-ERR syntax error near 'BLOCK'\r\n"},
			{"TYPE k", "+ratelimit\r\n"},
			{"TB.ACQUIRE k 1 1 1 1 BLOCK 0", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
			{"CC.ACQUIRE k 1 60 a BLOCK 0", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
		} {
			require.Equal(t, step[1], c.do(strings.Fields(step[0])...), step[0])
		}
		require.Zero(t, f.Keyspace().Waiting())
		require.Zero(t, f.clock.Timers())
	})
}

// TestBlockInsideMulti: nothing waits inside a transaction: TB answers as with WAIT 0,
// the others as without BLOCK.
func TestBlockInsideMulti(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		f.fill(c)
		c.send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.expect(five(0, 1, 0, -1, 60), five(0, 1, 0, -1, 60))
		c.send("MULTI\r\n" + waitWindow + "TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\nCC.ACQUIRE c 1 60 b BLOCK 0\r\nTB.ACQUIRE q 1 1 60 1 LEAKY BLOCK 0\r\nEXEC\r\nPING\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n",
			array(five(1, 1, 0, 60, 60), five(1, 1, 0, 60, 60), five(1, 1, 0, 60, 60), five(0, 1, 0, -1, 60)), "+PONG\r\n")
		require.Zero(t, f.Keyspace().Waiting())
		require.Zero(t, f.clock.Timers())
	})
}

// TestWhateverMakesRoomWakesTheFirst: whatever makes room lets the first in line look at
// once.
func TestWhateverMakesRoomWakesTheFirst(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		for _, wake := range []string{
			"DEL k", "UNLINK k", "FLUSHDB", "FLUSHALL", "RENAME k elsewhere", "RENAMENX k nowhere",
			"SW.ALLOW k 1 60 -1 FIXED ANCHOR FIRST", "EXPIRE k -1", "PEXPIREAT k 1", "EXPIRE k 0",
		} {
			c.do("FLUSHALL")
			f.fill(c)
			conns := f.queue(2, waitWindow)
			c.do(strings.Fields(wake)...)
			conns[0].expect(five(0, 1, 0, -1, 60))
			silent(t, conns[1])
			c.do("DEL", "nowhere")
			c.send("MULTI\r\n" + wake + "\r\nPING\r\nEXEC\r\n")
			c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
			require.Contains(t, c.reply(), "+PONG\r\n", wake)
			conns[1].expect(five(0, 1, 0, -1, 60))
		}
		c.send("FLUSHALL\r\nCC.ACQUIRE cc 1 60 a\r\n")
		c.expect("+OK\r\n", five(0, 1, 0, -1, 60))
		conns := f.queue(2, "CC.ACQUIRE cc 1 60 b BLOCK 0\r\n")
		require.Equal(t, ":1\r\n", c.do("CC.RELEASE", "cc", "a"))
		conns[0].expect(five(0, 1, 0, -1, 60))
		conns[1].expect(five(0, 1, 0, -1, 60)) // the same member, who has the place already

		// A key that expires is room, too, be it found by a look or by the sweeper.
		c.do("FLUSHALL")
		f.fill(c)
		require.Equal(t, ":1\r\n", c.do("EXPIRE", "k", "5"))
		waiter := f.queue(1, waitWindow)[0]
		f.clock.Advance(5 * time.Second)
		f.Keyspace().Sweep(1 << 20)
		waiter.expect(five(0, 1, 0, -1, 60))
	})
}

// TestWakesDoNotPileUp: however often the first is woken in vain, it keeps one timer.
func TestWakesDoNotPileUp(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		c.send("SW.ALLOW k 10 60 10 FIXED ANCHOR FIRST\r\n")
		c.expect(five(0, 10, 0, -1, 60))
		waiter := f.queue(1, "SW.ALLOW k 10 60 10 FIXED ANCHOR FIRST BLOCK 0\r\n")[0]
		for range 500 {
			c.send("SW.ALLOW k 10 60 -1 FIXED ANCHOR FIRST\r\nSW.ALLOW k 10 60 1 FIXED ANCHOR FIRST\r\n")
		}
		for range 500 {
			c.expect(five(0, 10, 1, -1, 60), five(0, 10, 0, -1, 60))
		}
		eventually(t, "one timer is left", func() bool { return f.clock.Timers() == 1 })
		silent(t, waiter)
		f.clock.Advance(time.Minute)
		waiter.expect(five(0, 10, 0, -1, 60))
	})
}

// TestBlockedClientLeaves: by closing, by closing its half, by a reset or killed: its
// place in line and its reservation are given back, and reservations behind it stay.
func TestBlockedClientLeaves(t *testing.T) {
	leave := map[string]func(admin, c *client, id string){
		"close":      func(_, c *client, _ string) { require.NoError(t, c.Close()) },
		"half close": func(_, c *client, _ string) { require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite()) },
		"reset": func(_, c *client, _ string) {
			require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
			require.NoError(t, c.Close())
		},
		"kill": func(admin, _ *client, id string) {
			require.Equal(t, ":1\r\n", admin.do("CLIENT", "KILL", "ID", id))
		},
	}
	eachTransport(t, func(t *testing.T, kind string) {
		for name, away := range leave {
			f := start(t, kind)
			c := f.dial()
			f.fill(c)
			conns := f.queue(3, waitWindow)
			ids := []string{"2", "3", "4"}
			away(c, conns[0], ids[0])
			eventually(t, name, func() bool { return f.Keyspace().Waiting() == 2 })
			eventually(t, "the next has a timer", func() bool { return f.clock.Timers() == 1 })
			away(c, conns[2], ids[2])
			eventually(t, name, func() bool { return f.Keyspace().Waiting() == 1 })
			f.clock.Advance(time.Minute)
			conns[1].expect(five(0, 1, 0, -1, 60))

			require.Equal(t, five(0, 1, 0, -1, 10), c.do("TB.ACQUIRE", "b", "1", "1", "10"))
			reserved := []*client{f.dial(), f.dial(), f.dial()}
			for i, r := range reserved {
				ids[i] = r.id()
				r.send("TB.ACQUIRE b 1 1 10 1 BLOCK 0\r\n")
				eventually(t, "it waits", func() bool { return f.clock.Timers() == i+1 })
			}
			require.Equal(t, five(1, 1, 0, 40, 40), c.do("TB.ACQUIRE", "b", "1", "1", "10"))
			away(c, reserved[0], ids[0])
			eventually(t, name, func() bool { return f.clock.Timers() == 2 })
			eventually(t, "its token is back", func() bool {
				return c.do("TB.ACQUIRE", "b", "1", "1", "10") == five(1, 1, 0, 30, 30)
			})
			f.clock.Advance(10 * time.Second)
			silent(t, reserved[1:]...)
			f.clock.Advance(10 * time.Second)
			reserved[1].expect(five(0, 1, 0, -1, 10))
			f.clock.Advance(10 * time.Second)
			require.Regexp(t, `^\*5\r\n:0\r\n:1\r\n:[01]\r\n:-1\r\n:\d+\r\n$`, reserved[2].reply())
		}
	})
}

// TestUnblock: CLIENT UNBLOCK answers as the timeout would, or with an error, and gives
// back what was reserved.
func TestUnblock(t *testing.T) {
	const unblocked = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		f.fill(c)
		c.send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.expect(five(0, 1, 0, -1, 60), five(0, 1, 0, -1, 60))
		for _, wait := range []string{waitWindow, "TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n", "CC.ACQUIRE c 1 60 b BLOCK 0\r\n"} {
			for _, how := range []string{"", "TIMEOUT", "error"} {
				w := f.dial()
				id := w.id()
				w.send(wait + "PING\r\n")
				// Its timer runs a moment before it can be unblocked.
				eventually(t, "it waits", func() bool { _, waits := f.Engine().CountClients(); return waits == 1 })
				require.Equal(t, ":1\r\n", c.do(strings.Fields("CLIENT UNBLOCK "+id+" "+how)...))
				if how == "error" {
					w.expect(unblocked)
				} else {
					w.expect(five(1, 1, 0, 60, 60))
				}
				w.expect("+PONG\r\n")
				require.Equal(t, ":0\r\n", c.do("CLIENT", "UNBLOCK", id))
				eventually(t, "nothing is left", func() bool { return f.clock.Timers() == 0 && f.Keyspace().Waiting() == 0 })
				require.NoError(t, w.Close())
			}
		}
		require.Equal(t, five(1, 1, 0, 60, 60), c.do("TB.ACQUIRE", "b", "1", "1", "60"), "all reservations were given back")
	})
}

// TestStopWakesEverybody: a server that stops answers all who wait, whatever their
// timeout, and lets nobody wait any more.
func TestStopWakesEverybody(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		f.fill(c)
		c.send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.expect(five(0, 1, 0, -1, 60), five(0, 1, 0, -1, 60))
		conns := f.queue(3, waitWindow)
		conns = append(conns, f.queue(1, "CC.ACQUIRE c 1 60 b BLOCK 0\r\n")...)
		reserved := f.dial()
		reserved.send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		eventually(t, "it waits", func() bool { return f.clock.Timers() == 3 })
		f.end()
		for _, w := range append(conns, reserved) {
			w.expect(five(1, 1, 0, 60, 60))
			w.expectEnd()
		}
		require.Zero(t, f.clock.Timers())
	})
}

// TestGrantSurvivesAnotherType: tokens that were granted stay granted when something
// else lies under the key by the time they are there; who only waits is told.
func TestGrantSurvivesAnotherType(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		require.Equal(t, five(0, 1, 0, -1, 60), c.do("TB.ACQUIRE", "b", "1", "1", "60"))
		w := f.dial()
		w.send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		eventually(t, "it waits", func() bool { return f.clock.Timers() == 1 })
		c.send("DEL b\r\nCL.THROTTLE b 1 1 600\r\n")
		c.expect(":1\r\n", five(0, 2, 1, -1, 600))
		f.clock.Advance(time.Minute)
		require.Contains(t, w.reply(), "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n")

		f.fill(c)
		waiter := f.queue(1, waitWindow)[0]
		c.send("MULTI\r\nDEL k\r\nCL.THROTTLE k 1 1 600\r\nEXEC\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", array(":1\r\n", five(0, 2, 1, -1, 600)))
		waiter.expect("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
	})
}

// TestBlockedClientIsSmall: what a client that waits costs above one that does nothing,
// and that there is no goroutine for it. The stack of a connection that has a goroutine
// anyway is not counted: it is as large as some command made it, or the collector left
// it, waiting or not.
func TestBlockedClientIsSmall(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector changes what things cost")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		for name, wait := range map[string]string{
			"window": waitWindow,
			"bucket": "TB.ACQUIRE b 1 1 1 1 BLOCK 0\r\n",
			"lease":  "CC.ACQUIRE c 1 60 b BLOCK 0\r\n",
		} {
			// What earlier tests left behind comes and goes in the same heap, so one
			// look of several has to be undisturbed.
			least := int64(math.MaxInt64)
			for range 5 {
				if least = min(least, blockedCost(t, kind, wait)); least < 2<<10 {
					break
				}
			}
			t.Logf("%s: %d bytes above an idle client", name, least)
			require.Less(t, least, int64(2<<10), name)
		}
	})
}

// blockedCost returns how many bytes a client takes that waits as wait says, above one
// that does nothing, and fails the test if a goroutine waits for it.
func blockedCost(t *testing.T, kind, wait string) (each int64) {
	f := start(t, kind)
	defer f.end()
	const n = 1000
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		// The same call under a key of its own passes.
		words := strings.SplitN(wait, " ", 3)
		_, err = fmt.Fprintf(c, "%s own:%d %s", words[0], i, words[2])
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 64))
		require.NoError(t, err)
		conns[i] = c
	}
	c := f.dial()
	f.fill(c)
	c.send("TB.ACQUIRE b 1 1 1\r\nCC.ACQUIRE c 1 60 a\r\n")
	c.expect(five(0, 1, 0, -1, 1), five(0, 1, 0, -1, 60))
	memory := heapBytes
	if kind == "epoll" {
		memory = func() uint64 { return heapBytes() + stackBytes() }
	}
	idle, goroutines := memory(), runtime.NumGoroutine()
	for _, c := range conns {
		_, err := c.Write([]byte(wait))
		require.NoError(t, err)
	}
	eventually(t, "all wait", func() bool { return max(f.Keyspace().Waiting(), f.clock.Timers()) >= n })
	eventually(t, "all are counted", func() bool { return c.info("blocked_clients") == fmt.Sprint(n) })
	eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines+8 })
	each = (int64(memory()) - int64(idle)) / n
	runtime.KeepAlive(conns)
	return each
}
