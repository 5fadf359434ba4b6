package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowCommandsKeepOrder: commands that run in the background do not let those behind
// them in the pipeline overtake.
func TestSlowCommandsKeepOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		var all sync.WaitGroup
		for i := range 8 {
			c := f.dial()
			all.Go(func() {
				key := fmt.Sprintf("own:%d", i)
				one := "CL.THROTTLE " + key + " 9 1 3600\r\nKEYS " + key + "\r\nPING a\r\nSCAN 0 COUNT 100000 MATCH " + key + "\r\nDBSIZE\r\nSELECT 5\r\nFLUSHDB\r\nSELECT 0\r\nPING b\r\n"
				c.send(strings.Repeat(one, 20))
				for n := range int64(20) {
					first := c.reply()
					if n < 10 {
						require.Contains(t, first, fmt.Sprintf("*5\r\n:0\r\n:10\r\n:%d\r\n", 9-n))
					}
					c.expect(array(bulk(key)), bulk("a"), array(bulk("0"), array(bulk(key))))
					require.Regexp(t, `^:\d+\r\n$`, c.reply())
					c.expect("+OK\r\n", "+OK\r\n", "+OK\r\n", bulk("b"))
				}
			})
		}
		all.Wait()
	})
}

// TestNothingRunsWhileTheWorldIsStopped stops the world. No client gets a reply while it
// is stopped. What was received meanwhile runs in order when it starts.
func TestNothingRunsWhileTheWorldIsStopped(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		conns := make([]*client, 16)
		for i := range conns {
			conns[i] = f.dial()
			require.Equal(t, "+PONG\r\n", conns[i].do("PING"))
		}
		world := f.Keyspace().World()
		in := int64(len(conns) * len(frame("PING")))
		eventually(t, "the counters are up to date", func() bool { return f.Stats().BytesIn == in })
		for round := range 20 {
			require.True(t, world.Stop(nil))
			sent := 0
			for i, c := range conns {
				packet := fmt.Sprintf("PING %d\r\nKEYS none\r\nPING %d\r\n", i, round)
				sent += len(packet)
				c.send(packet)
			}
			in += int64(sent)
			eventually(t, "all is received", func() bool { return f.Stats().BytesIn == in })
			out := f.Stats().BytesOut
			f.Engine().CloseOverdue(f.clock.Now())
			require.Equal(t, out, f.Stats().BytesOut, "somebody was answered while the world was stopped")
			world.Start()
			for i, c := range conns {
				c.expect(bulk(fmt.Sprint(i)), "*0\r\n", bulk(fmt.Sprint(round)))
			}
		}
	})
}

// TestStoppingTheWorldLosesNoWakeUp stops and starts the world all the time. Every client
// gets its replies.
func TestStoppingTheWorldLosesNoWakeUp(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
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
			c := f.dial()
			all.Go(func() {
				for range 200 {
					c.send("PING\r\nFLUSHALL\r\nPING\r\n")
					c.expect("+PONG\r\n", "+OK\r\n", "+PONG\r\n")
				}
			})
		}
		all.Wait()
		close(stop)
		<-ended
	})
}

// TestClientKillEndsClientsInEveryState kills idle, waiting, slow-reading and stopped
// clients. They end, and so does what they were doing.
func TestClientKillEndsClientsInEveryState(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--write-timeout", "3600")
		admin := f.dial()
		idle, blocked, slow, partial, watching := f.dial(), f.dial(), f.dial(), f.dial(), f.dial()
		require.Equal(t, "+PONG\r\n", idle.do("PING"))
		require.Equal(t, five(0, 1, 0, -1, 60), admin.do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"))
		blocked.send("SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n")
		slow.send(strings.Repeat("COMMAND DOCS\r\n", 1000))
		partial.send("PING\r\n*2\r\n$4\r\nECHO\r\n$10\r\nhal")
		partial.expect("+PONG\r\n")
		require.Equal(t, "+OK\r\n", watching.do("WATCH", "k"))
		eventually(t, "the blocked one waits", func() bool { return f.Keyspace().Waiting() == 1 })
		eventually(t, "the slow one is stuck", func() bool { return f.Stats().Pending > 0 })
		require.Equal(t, "6", admin.info("connected_clients"))
		require.Equal(t, "1", admin.info("blocked_clients"))

		require.Equal(t, ":5\r\n", admin.do("CLIENT", "KILL", "TYPE", "normal"))
		for _, c := range []*client{idle, blocked, partial, watching} {
			c.expectEnd()
		}
		eventually(t, "all are gone", func() bool { return admin.info("connected_clients") == "1" })
		eventually(t, "what they did is over", func() bool { return f.Keyspace().Waiting() == 0 && f.clock.Timers() == 0 })

		again := f.dial()
		addr := again.LocalAddr().String()
		require.Equal(t, "+PONG\r\n", again.do("PING"))
		require.Equal(t, "+OK\r\n", admin.do("CLIENT", "KILL", addr))
		again.expectEnd()
		require.Equal(t, "-ERR No such client\r\n", admin.do("CLIENT", "KILL", addr))
		require.Equal(t, ":0\r\n", admin.do("CLIENT", "KILL", "ID", "4711"))
		require.Equal(t, ":0\r\n", admin.do("CLIENT", "KILL", "TYPE", "pubsub"))
		require.Equal(t, ":0\r\n", admin.do("CLIENT", "KILL", "ADDR", admin.LocalAddr().String()))
		require.Equal(t, ":1\r\n", admin.do("CLIENT", "KILL", "LADDR", f.addr, "SKIPME", "no"))
		admin.expectEnd()
	})
}

// TestKilledClientIsGoneAtOnce kills a client. It is not listed any more, even if its
// connection has not ended yet.
func TestKilledClientIsGoneAtOnce(t *testing.T) {
	b := newBench(t)
	victim := b.another()
	id := strings.Trim(string(victim.feed(frame("CLIENT", "ID"))), ":\r\n")
	require.Contains(t, string(b.feed(frame("CLIENT", "LIST"))), "id="+id+" ")
	require.Equal(t, ":1\r\n", string(b.feed(frame("CLIENT", "KILL", "ID", id))))
	require.Equal(t, ":0\r\n", string(b.feed(frame("CLIENT", "KILL", "ID", id))))
	require.NotContains(t, string(b.feed(frame("CLIENT", "LIST"))), "id="+id+" ")
}

// TestKillArguments: what CLIENT KILL makes of bad arguments, in Redis' words.
func TestKillArguments(t *testing.T) {
	c := start(t, "goroutine").dial()
	for args, want := range map[string]string{
		"KILL":                   "-ERR wrong number of arguments for 'client|kill' command\r\n",
		"KILL ID":                "-ERR No such client\r\n",
		"KILL ID 0":              "-ERR client-id should be greater than 0\r\n",
		"KILL ID x":              "-ERR client-id should be greater than 0\r\n",
		"KILL ID 1 ADDR":         "-ERR syntax error\r\n",
		"KILL TYPE bogus":        "-ERR Unknown client type 'bogus'\r\n",
		"KILL USER bogus":        "-ERR No such user 'bogus'\r\n",
		"KILL SKIPME bogus":      "-ERR syntax error\r\n",
		"KILL BOGUS x":           "-ERR syntax error\r\n",
		"UNBLOCK x":              "-ERR value is not an integer or out of range\r\n",
		"UNBLOCK 1 MAYBE":        "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n",
		"UNBLOCK 99":             ":0\r\n",
		"UNBLOCK 1":              ":0\r\n",
		"SETNAME a\x01b":         "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
		"SETINFO LIB-NAME \x01":  "-ERR LIB-NAME cannot contain spaces, newlines or special characters.\r\n",
		"SETINFO lib-x y":        "-ERR Unrecognized option 'lib-x'\r\n",
		"REPLY maybe":            "-ERR syntax error\r\n",
		"MAINT_NOTIFICATIONS ON": "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n",
		"CACHING YES":            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled\r\n",
		"LIST TYPE bogus":        "-ERR Unknown client type 'bogus'\r\n",
		"LIST ID x":              "-ERR Invalid client ID\r\n",
		"LIST BOGUS":             "-ERR syntax error\r\n",
		"LIST ID 4711":           "$0\r\n\r\n",
		"NO-EVICT maybe":         "-ERR syntax error\r\n",
	} {
		require.Equal(t, want, c.do(append([]string{"CLIENT"}, strings.Split(args, " ")...)...), args)
	}
}

// TestClientReply: ON, OFF and SKIP, with commands that answer at once, fail, park or
// are queued.
func TestClientReply(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		for packet, want := range map[string][]string{
			"CLIENT REPLY SKIP\r\nPING\r\nPING a\r\n":                                                                    {bulk("a")},
			"CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\nPING a\r\n":                                               {bulk("a")},
			"CLIENT REPLY SKIP\r\nNOSUCH\r\nPING a\r\n":                                                                  {bulk("a")},
			"CLIENT REPLY SKIP\r\nGET\r\nPING a\r\n":                                                                     {bulk("a")},
			"CLIENT REPLY SKIP\r\nFLUSHALL\r\nPING a\r\n":                                                                {bulk("a")},
			"CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING a\r\n":                                                         {"+OK\r\n", bulk("a")},
			"CLIENT REPLY OFF\r\nPING\r\nKEYS *\r\nNOSUCH\r\nCLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY ON\r\nPING a\r\n": {"+OK\r\n", bulk("a")},
			"CLIENT REPLY OFF\r\nSW.ALLOW x 1 60 1 BLOCK 0\r\nMULTI\r\nPING\r\nEXEC\r\nCLIENT REPLY ON\r\n":              {"+OK\r\n"},
			"CLIENT REPLY SKIP\r\nMULTI\r\nPING\r\nEXEC\r\n":                                                             {"+QUEUED\r\n", array("+PONG\r\n")},
			"CLIENT REPLY OFF\r\nRESET\r\nPING\r\n":                                                                      {"+RESET\r\n", "+PONG\r\n"},
		} {
			c.send(packet)
			c.expect(want...)
		}
		// A wait that is answered, skipped.
		require.Equal(t, five(0, 1, 0, -1, 1), c.do("TB.ACQUIRE", "b", "1", "1", "1"))
		c.send("CLIENT REPLY SKIP\r\nTB.ACQUIRE b 1 1 1 1 BLOCK 0\r\nPING a\r\n")
		eventually(t, "it waits", func() bool { return f.clock.Timers() == 1 })
		f.clock.Advance(time.Second)
		c.expect(bulk("a"))
		// Even what ends the connection is silent.
		c.send("CLIENT REPLY OFF\r\nPING\r\n*x\r\n")
		c.expectEnd()
	})
}

// TestDelayedHelloSwitchesTheProtocol: commands behind a HELLO AUTH that had to wait are
// answered in the protocol that it asked for.
func TestDelayedHelloSwitchesTheProtocol(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		c := f.dial()
		for range 10 {
			require.Contains(t, c.do("AUTH", "wrong"), "-WRONGPASS")
		}
		c.send("HELLO 3 AUTH default sesame SETNAME me\r\nGET nothing\r\nCLIENT GETNAME\r\n")
		eventually(t, "the attempt waits", func() bool { return f.clock.Timers() == 1 })
		f.clock.Advance(time.Second)
		require.Contains(t, c.reply(), "%7\r\n")
		c.expect("_\r\n", bulk("me"))
	})
}
