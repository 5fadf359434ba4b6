package transport_test

import (
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// A window of one unit a minute begins with its first hit, so a second call waits for the end of
// the minute.
const (
	takeWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n"
	waitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
)

// fill uses up the window.
func fill(c *inproc.Client) {
	c.Send(takeWindow)
	c.Expect(inproc.Five(0, 1, 0, -1, 60))
}

// queue makes n clients wait for the window, one after the other.
func queue(t *testing.T, f *inproc.Served, n int, command string) []*inproc.Client {
	t.Helper()
	before := f.Keyspace().Waiting()
	conns := make([]*inproc.Client, n)
	for i := range conns {
		conns[i] = f.Dial()
		conns[i].Send(command)
		inproc.Await(t, "it waits", func() bool { return f.Keyspace().Waiting() == before+i+1 })
	}
	return conns
}

// TestBlockedClientLeaves: when a blocked client closes, closes its sending side, resets or is
// killed, its place in the queue and its reservation are released, and later reservations stay.
func TestBlockedClientLeaves(t *testing.T) {
	leave := map[string]func(admin, c *inproc.Client, id string){
		"close":      func(_, c *inproc.Client, _ string) { require.NoError(t, c.Close()) },
		"half close": func(_, c *inproc.Client, _ string) { require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite()) },
		"reset": func(_, c *inproc.Client, _ string) {
			require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
			require.NoError(t, c.Close())
		},
		"kill": func(admin, _ *inproc.Client, id string) {
			require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "ID", id))
		},
	}
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		for name, away := range leave {
			f := inproc.Serve(t, kind)
			c := f.Dial()
			fill(c)
			conns := queue(t, f, 3, waitWindow)
			ids := []string{"2", "3", "4"}
			away(c, conns[0], ids[0])
			inproc.Await(t, name, func() bool { return f.Keyspace().Waiting() == 2 })
			inproc.Await(t, "the next has a timer", func() bool { return f.Clock.Timers() == 1 })
			away(c, conns[2], ids[2])
			inproc.Await(t, name, func() bool { return f.Keyspace().Waiting() == 1 })
			f.Clock.Advance(time.Minute)
			conns[1].Expect(inproc.Five(0, 1, 0, -1, 60))

			require.Equal(t, inproc.Five(0, 1, 0, -1, 10), c.Do("TB.ACQUIRE", "b", "1", "1", "10"))
			reserved := []*inproc.Client{f.Dial(), f.Dial(), f.Dial()}
			for i, r := range reserved {
				ids[i] = r.ID()
				r.Send("TB.ACQUIRE b 1 1 10 1 BLOCK 0\r\n")
				inproc.Await(t, "it waits", func() bool { return f.Clock.Timers() == i+1 })
			}
			require.Equal(t, inproc.Five(1, 1, 0, 40, 40), c.Do("TB.ACQUIRE", "b", "1", "1", "10"))
			away(c, reserved[0], ids[0])
			inproc.Await(t, name, func() bool { return f.Clock.Timers() == 2 })
			inproc.Await(t, "its token is back", func() bool {
				return c.Do("TB.ACQUIRE", "b", "1", "1", "10") == inproc.Five(1, 1, 0, 30, 30)
			})
			f.Clock.Advance(10 * time.Second)
			f.Clock.Advance(10 * time.Second)
			reserved[1].Expect(inproc.Five(0, 1, 0, -1, 10))
			f.Clock.Advance(10 * time.Second)
			require.Regexp(t, `^\*5\r\n:0\r\n:1\r\n:[01]\r\n:-1\r\n:\d+\r\n$`, reserved[2].Reply())
		}
	})
}

// TestStopWakesEverybody: a server that stops replies to all blocked clients, whatever their
// timeout, and blocks no further ones.
func TestStopWakesEverybody(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		c := f.Dial()
		fill(c)
		c.Send("TB.ACQUIRE b 1 1 60\r\nCC.ACQUIRE c 1 60 a\r\n")
		c.Expect(inproc.Five(0, 1, 0, -1, 60), inproc.Five(0, 1, 0, -1, 60))
		conns := queue(t, f, 3, waitWindow)
		conns = append(conns, queue(t, f, 1, "CC.ACQUIRE c 1 60 b BLOCK 0\r\n")...)
		reserved := f.Dial()
		reserved.Send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		inproc.Await(t, "it waits", func() bool { return f.Clock.Timers() == 3 })
		f.End()
		for _, c := range append(conns, reserved) {
			c.Expect(inproc.Five(1, 1, 0, 60, 60))
			c.ExpectEnd()
		}
		require.Zero(t, f.Clock.Timers())
	})
}

// TestBlockedClientIsSmall bounds the memory of a blocked client beyond that of an idle one, and
// checks that it has no goroutine of its own. The stack of a connection that has a goroutine anyway
// does not count: its size depends on earlier commands and on the garbage collector.
func TestBlockedClientIsSmall(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector changes what things cost")
	}
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		for name, wait := range map[string]string{
			"window": waitWindow,
			"bucket": "TB.ACQUIRE b 1 1 1 1 BLOCK 0\r\n",
			"lease":  "CC.ACQUIRE c 1 60 b BLOCK 0\r\n",
		} {
			// Other tests' garbage is in the same heap, so one of several measurements has to be
			// undisturbed.
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

// blockedCost returns how many bytes a client that waits with the call wait takes beyond an idle
// one. It fails the test if a goroutine waits for the client.
func blockedCost(t *testing.T, kind, wait string) (each int64) {
	f := inproc.Serve(t, kind)
	defer f.End()
	const n = 1000
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", f.Addr().String())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		// The same call with a key of its own passes.
		words := strings.SplitN(wait, " ", 3)
		_, err = fmt.Fprintf(c, "%s own:%d %s", words[0], i, words[2])
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 64))
		require.NoError(t, err)
		conns[i] = c
	}
	c := f.Dial()
	fill(c)
	c.Send("TB.ACQUIRE b 1 1 1\r\nCC.ACQUIRE c 1 60 a\r\n")
	c.Expect(inproc.Five(0, 1, 0, -1, 1), inproc.Five(0, 1, 0, -1, 60))
	memory := inproc.HeapBytes
	if kind == "epoll" {
		memory = func() uint64 { return inproc.HeapBytes() + stackBytes() }
	}
	idle, goroutines := memory(), runtime.NumGoroutine()
	// One after the other, because concurrent calls would need as many workers, which are kept.
	for i, c := range conns {
		_, err := c.Write([]byte(wait))
		require.NoError(t, err)
		waits := func() bool { return max(f.Keyspace().Waiting(), f.Clock.Timers()) > i }
		for tries := 0; tries < 10_000 && !waits(); tries++ {
			runtime.Gosched()
		}
		inproc.Await(t, "it waits", waits)
	}
	inproc.Await(t, "all are counted", func() bool { return c.Info("blocked_clients") == fmt.Sprint(n) })
	inproc.Await(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines+8 })
	each = (int64(memory()) - int64(idle)) / n
	runtime.KeepAlive(conns)
	return each
}

// stackBytes returns the memory of the stacks of goroutines.
func stackBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.StackInuse
}
