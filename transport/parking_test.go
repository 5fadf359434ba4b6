package transport_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestSlowCommandsKeepOrder: later commands of a pipeline do not overtake commands that run in the
// background.
func TestSlowCommandsKeepOrder(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		var all sync.WaitGroup
		for i := range 8 {
			c := f.Dial()
			all.Go(func() {
				key := fmt.Sprintf("own:%d", i)
				one := "CL.THROTTLE " + key + " 9 1 3600\r\nKEYS " + key + "\r\nPING a\r\nSCAN 0 COUNT 100000 MATCH " + key + "\r\nDBSIZE\r\nSELECT 5\r\nFLUSHDB\r\nSELECT 0\r\nPING b\r\n"
				c.Send(strings.Repeat(one, 20))
				for n := range int64(20) {
					first := c.Reply()
					if n < 10 {
						require.Contains(t, first, fmt.Sprintf("*5\r\n:0\r\n:10\r\n:%d\r\n", 9-n))
					}
					c.Expect(inproc.Array(inproc.Bulk(key)), inproc.Bulk("a"), inproc.Array(inproc.Bulk("0"), inproc.Array(inproc.Bulk(key))))
					require.Regexp(t, `^:\d+\r\n$`, c.Reply())
					c.Expect("+OK\r\n", "+OK\r\n", "+OK\r\n", inproc.Bulk("b"))
				}
			})
		}
		all.Wait()
	})
}

// TestNothingRunsWhileTheWorldIsStopped: no client gets a reply while the world is stopped.
// Commands that are received meanwhile run in order when it starts again.
func TestNothingRunsWhileTheWorldIsStopped(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		conns := make([]*inproc.Client, 16)
		for i := range conns {
			conns[i] = f.Dial()
			require.Equal(t, "+PONG\r\n", conns[i].Do("PING"))
		}
		world := f.Keyspace().World()
		in := int64(len(conns) * len(inproc.Encode(nil, "PING")))
		inproc.Await(t, "the counters are up to date", func() bool { return f.Traffic().BytesIn == in })
		for round := range 20 {
			require.True(t, world.Stop(nil))
			sent := 0
			for i, c := range conns {
				packet := fmt.Sprintf("PING %d\r\nKEYS none\r\nPING %d\r\n", i, round)
				sent += len(packet)
				c.Send(packet)
			}
			in += int64(sent)
			inproc.Await(t, "all is received", func() bool { return f.Traffic().BytesIn == in })
			out := f.Traffic().BytesOut
			f.Engine().CloseOverdue(f.Clock.Now())
			require.Equal(t, out, f.Traffic().BytesOut, "somebody was answered while the world was stopped")
			world.Start()
			for i, c := range conns {
				c.Expect(inproc.Bulk(fmt.Sprint(i)), "*0\r\n", inproc.Bulk(fmt.Sprint(round)))
			}
		}
	})
}

// TestStoppingTheWorldLosesNoWakeUp stops and starts the world repeatedly. Every client gets its
// replies.
func TestStoppingTheWorldLosesNoWakeUp(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		world := f.Keyspace().World()
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					if world.Stop(nil) {
						world.Start()
					}
				}
			}
		}()
		var all sync.WaitGroup
		for range 8 {
			c := f.Dial()
			all.Go(func() {
				for range 200 {
					c.Send("PING\r\nFLUSHALL\r\nPING\r\n")
					c.Expect("+PONG\r\n", "+OK\r\n", "+PONG\r\n")
				}
			})
		}
		all.Wait()
		close(stop)
		<-ended
	})
}

// TestClientKillEndsClientsInEveryState kills idle, blocked, slow-reading and parked clients. They
// end, and so do their commands.
func TestClientKillEndsClientsInEveryState(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--write-timeout", "3600")
		admin := f.Dial()
		idle, blocked, slow, partial, watching := f.Dial(), f.Dial(), f.Dial(), f.Dial(), f.Dial()
		require.Equal(t, "+PONG\r\n", idle.Do("PING"))
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		blocked.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n")
		slow.Send(strings.Repeat("COMMAND DOCS\r\n", 1000))
		partial.Send("PING\r\n*2\r\n$4\r\nECHO\r\n$10\r\nhal")
		partial.Expect("+PONG\r\n")
		require.Equal(t, "+OK\r\n", watching.Do("WATCH", "k"))
		inproc.Await(t, "the blocked one waits", func() bool { return f.Keyspace().Waiting() == 1 })
		inproc.Await(t, "the slow one is stuck", func() bool { return f.Traffic().Pending > 0 })
		require.Equal(t, "6", admin.Info("connected_clients"))
		require.Equal(t, "1", admin.Info("blocked_clients"))

		require.Equal(t, ":5\r\n", admin.Do("CLIENT", "KILL", "TYPE", "normal"))
		for _, c := range []*inproc.Client{idle, blocked, partial, watching} {
			c.ExpectEnd()
		}
		inproc.Await(t, "all are gone", func() bool { return admin.Info("connected_clients") == "1" })
		inproc.Await(t, "what they did is over", func() bool { return f.Keyspace().Waiting() == 0 && f.Clock.Timers() == 0 })

		again := f.Dial()
		addr := again.LocalAddr().String()
		require.Equal(t, "+PONG\r\n", again.Do("PING"))
		require.Equal(t, "+OK\r\n", admin.Do("CLIENT", "KILL", addr))
		again.ExpectEnd()
		require.Equal(t, "-ERR No such client\r\n", admin.Do("CLIENT", "KILL", addr))
		require.Equal(t, ":0\r\n", admin.Do("CLIENT", "KILL", "ID", "4711"))
		require.Equal(t, ":0\r\n", admin.Do("CLIENT", "KILL", "TYPE", "pubsub"))
		require.Equal(t, ":0\r\n", admin.Do("CLIENT", "KILL", "ADDR", admin.LocalAddr().String()))
		require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "LADDR", f.Addr().String(), "SKIPME", "no"))
		admin.ExpectEnd()
	})
}

// TestPushesComeBetweenReplies: messages of other goroutines to a client arrive whole and between
// replies, also while the client is parked.
func TestPushesComeBetweenReplies(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		c := f.Dial()
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), c.Do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		client := f.Engine().Clients()[0]
		const push = ">2\r\n+news\r\n:1\r\n"
		c.Send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\nPING\r\n")
		inproc.Await(t, "it waits", func() bool { return f.Keyspace().Waiting() == 1 })
		f.Engine().Push(client, []byte(push))
		c.Expect(push)
		f.Clock.Advance(time.Minute)
		c.Expect(inproc.Five(0, 1, 0, -1, 60), "+PONG\r\n")

		const pushes = 500
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range pushes {
					f.Engine().Push(client, []byte(push))
				}
			})
		}
		all.Go(func() { c.Send(strings.Repeat("ECHO 0123456789\r\n", 2000)) })
		seen, echoes := 0, 0
		for seen < 4*pushes || echoes < 2000 {
			switch got := c.Reply(); got {
			case push:
				seen++
			case inproc.Bulk("0123456789"):
				echoes++
			default:
				require.Fail(t, "neither a push nor a reply", "%q", got)
			}
		}
		all.Wait()
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
	})
}

// TestPushesBeyondAllBounds: a client that does not read is disconnected before the pushes to it
// fill the memory.
func TestPushesBeyondAllBounds(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		c := f.Dial()
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
		client := f.Engine().Clients()[0]
		world := f.Keyspace().World()
		require.True(t, world.Stop(nil))
		defer world.Start()
		push := []byte("+" + strings.Repeat("x", 1<<20) + "\r\n")
		for range 200 {
			f.Engine().Push(client, push)
		}
		_, err := c.R.ReadString('\x00') // no message contains it, so this reads to the end
		require.Error(t, err)
		require.NotContains(t, err.Error(), "timeout")
	})
}
