package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// awaits wants n clients to wait for elements.
func (f *fixture) awaits(admin *client, n int) {
	f.t.Helper()
	eventually(f.t, "they wait", func() bool { return admin.info("blocked_clients") == fmt.Sprint(n) })
}

// TestEachElementIsPoppedOnce: whoever pushes, in whatever way, and however many wait
// under several keys and move elements on, each element reaches exactly one client.
func TestEachElementIsPoppedOnce(t *testing.T) {
	const poppers, movers, pushers, each = 60, 10, 8, 150
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		var all, pushing sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]int{}
		for i := range poppers {
			c := f.dial()
			all.Go(func() {
				for {
					call := []string{"BLPOP a b in 0", "BRPOP b a 0", "BLMPOP 0 2 b a LEFT COUNT 3", "BLPOP out 0"}[i%4]
					c.send(call + "\r\n")
					values := strings.Split(c.reply(), "\r\n")
					mu.Lock()
					over := false
					for _, v := range values {
						if strings.HasPrefix(v, "e:") {
							seen[v]++
						}
						over = over || v == "end"
					}
					mu.Unlock()
					if over {
						return
					}
				}
			})
		}
		for range movers {
			c := f.dial()
			all.Go(func() {
				for c.do("BLMOVE", "in", "out", "LEFT", "RIGHT", "0") != bulk("stop") {
				}
			})
		}
		for i := range pushers {
			c := f.dial()
			pushing.Go(func() {
				for n := range each {
					e := fmt.Sprintf("e:%d:%d", i, n)
					switch n % 5 {
					case 0:
						c.do("RPUSH", "a", e)
					case 1:
						c.do("LPUSH", "b", e)
					case 2:
						c.do("LPUSH", "in", e)
					case 3:
						c.send("MULTI\r\nRPUSH in " + e + "\r\nEXEC\r\n")
						for range 3 {
							c.reply()
						}
					default:
						c.do("EVAL", "local function f() redis.call('rpush', 'tmp', ARGV[1]) redis.call('lmove', 'tmp', KEYS[1], 'LEFT', 'LEFT') end f()", "1", "b", e)
					}
				}
			})
		}
		pushing.Wait()
		admin := f.dial()
		eventually(t, "all have been popped", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen) == pushers*each
		})
		f.awaits(admin, poppers+movers)
		require.Equal(t, ":0\r\n", admin.do("EXISTS", "a", "b", "in", "out", "tmp"))
		// Those who move stop after one more, which a popper takes as nothing.
		for range movers + poppers {
			admin.do("RPUSH", "a", "end")
			admin.do("RPUSH", "in", "stop")
			admin.do("RPUSH", "out", "end")
		}
		for range poppers {
			admin.do("RPUSH", "b", "end")
		}
		all.Wait()
		for e, n := range seen {
			require.Equal(t, 1, n, e)
		}
		require.Zero(t, f.Keyspace().PopWaiting())
	})
}

// TestPopWaiterIsServedByTheKeyThatFits: whose key has come to hold something of another type
// goes on waiting for its other keys, and gets what comes under them, whichever shards the
// keys are in and whatever is held when that comes.
func TestPopWaiterIsServedByTheKeyThatFits(t *testing.T) {
	f := start(t, "epoll")
	admin, waiter := f.dial(), f.dial()
	for i := range 12 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		for call, feed := range map[string]string{
			"BLPOP " + a + " " + b + " 0":              "RPUSH " + b + " 1",
			"BLMPOP 0 2 " + a + " " + b + " LEFT":      "RPUSH " + b + " 1",
			"BZPOPMIN " + a + " " + b + " 0":           "ZADD " + b + " 1 1",
			"BZMPOP 0 2 " + a + " " + b + " MAX COUNT": "ZADD " + b + " 1 1",
		} {
			if strings.HasSuffix(call, "COUNT") {
				call += " 2"
			}
			for _, others := range []string{"SET " + a + " x", "SADD " + a + " x"} {
				for _, together := range []bool{false, true} {
					waiter.send(call + "\r\n")
					f.awaits(admin, 1)
					if together {
						admin.send("MULTI\r\n" + others + "\r\n" + feed + "\r\nEXEC\r\n")
						for range 4 {
							admin.reply()
						}
					} else {
						admin.do(strings.Fields(others)...)
						require.Equal(t, "1", admin.info("blocked_clients"))
						admin.do(strings.Fields(feed)...)
					}
					got := waiter.reply()
					require.Contains(t, got, bulk(b), "%s; %s; %s", call, others, feed)
					require.Equal(t, ":0\r\n", admin.do("EXISTS", b))
					admin.do("DEL", a)
				}
			}
		}
	}
}

// TestPopWaitersThatLeave: who is gone, killed or unblocked takes nothing, the next is
// served, and who still waits when the server stops is answered as by a timeout.
func TestPopWaitersThatLeave(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, gone, killed, next, last := f.dial(), f.dial(), f.dial(), f.dial(), f.dial()
		id := killed.id()
		for i, c := range []*client{gone, killed, next, last} {
			c.send("BLPOP l m 0\r\nPING\r\n")
			f.awaits(admin, i+1)
		}
		require.NoError(t, gone.Close())
		f.awaits(admin, 3)
		require.Equal(t, ":1\r\n", admin.do("CLIENT", "KILL", "ID", id))
		f.awaits(admin, 2)
		require.Equal(t, ":1\r\n", admin.do("RPUSH", "m", "x"))
		next.expect("*2\r\n"+bulk("m")+bulk("x"), "+PONG\r\n")
		f.awaits(admin, 1)
		eventually(t, "only the last is left", func() bool { return f.Keyspace().PopWaiting() == 2 })
		f.end()
		last.expect("*-1\r\n")
	})
}

// TestPopsBehindAPause: while changes are paused nobody is served, since nobody pushes,
// and timeouts are kept.
func TestPopsBehindAPause(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, waiter, pusher := f.dial(), f.dial(), f.dial()
		waiter.send("BLPOP l 0\r\n")
		f.awaits(admin, 1)
		require.Equal(t, "+OK\r\n", admin.do("CLIENT", "PAUSE", "100000", "WRITE"))
		pusher.send("RPUSH l x\r\n")
		f.awaits(admin, 2)
		silent(t, waiter, pusher)
		require.Equal(t, "+OK\r\n", admin.do("CLIENT", "UNPAUSE"))
		waiter.expect("*2\r\n" + bulk("l") + bulk("x"))
		pusher.expect(":1\r\n")
	})
}

// TestPopsAreKept: what a waiter took is gone after a restart, and where it was moved it is.
func TestPopsAreKept(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		dir := t.TempDir()
		f := start(t, kind, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always")
		admin, a, b := f.dial(), f.dial(), f.dial()
		a.send("BLPOP l 0\r\n")
		f.awaits(admin, 1)
		b.send("BLMOVE l m LEFT LEFT 0\r\n")
		f.awaits(admin, 2)
		require.Equal(t, ":3\r\n", admin.do("RPUSH", "l", "1", "2", "3"))
		a.expect("*2\r\n" + bulk("l") + bulk("1"))
		b.expect(bulk("2"))
		f.end()
		f = start(t, kind, "--dir", dir, "--appendonly", "yes")
		admin = f.dial()
		require.Equal(t, array(bulk("3")), admin.do("LRANGE", "l", "0", "-1"))
		require.Equal(t, array(bulk("2")), admin.do("LRANGE", "m", "0", "-1"))
	})
}

// TestPopWaitersAreBounded: what a client waits for counts as held for it, with a bound,
// and is given back.
func TestPopWaitersAreBounded(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, waiter := f.dial(), f.dial()
		keys := func(n, length int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, " key:%0*d", length, i)
			}
			return b.String()
		}
		words := strings.Fields("BLPOP" + keys(64_000, 1) + " 0")
		require.Equal(t, "-ERR too many keys to wait for\r\n", waiter.do(words...))
		require.Zero(t, f.Keyspace().PopWaiting())
		words = strings.Fields("BLPOP" + keys(16_000, 5) + " 0")
		waiter.command(words...)
		f.awaits(admin, 1)
		eventually(t, "it is in all queues", func() bool { return f.Keyspace().PopWaiting() == 16_000 })
		held := regexp.MustCompile(`multi-mem=4\d{6} .*cmd=blpop`)
		eventually(t, "it counts as held", func() bool { return held.MatchString(admin.do("CLIENT", "LIST")) })
		require.Equal(t, ":1\r\n", admin.do("LPUSH", "key:15999", "x"))
		waiter.expect("*2\r\n" + bulk("key:15999") + bulk("x"))
		require.Zero(t, f.Keyspace().PopWaiting())
		require.Equal(t, "+PONG\r\n", waiter.do("PING"))
		require.NotRegexp(t, `multi-mem=4\d{6}`, admin.do("CLIENT", "LIST"))
	})
}

// TestServedMoveCountsAsTheWaitersOwnWrite serves a waiter that moves an element. The
// move is the waiter's write, not that of the client whose push served it: that client is
// notified of the change even with NOLOOP.
func TestServedMoveCountsAsTheWaitersOwnWrite(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, pusher, mover := f.dial(), f.tracker("NOLOOP"), f.tracker("NOLOOP")
		for _, c := range []*client{pusher, mover} {
			require.Equal(t, ":0\r\n", c.do("LLEN", "to"))
		}
		mover.send("BLMOVE from to LEFT LEFT 0\r\n")
		f.awaits(admin, 1)
		pusher.send("RPUSH from x\r\n")
		pusher.expect(":1\r\n", invalidated("to"))
		mover.expect(bulk("x"))
		require.Equal(t, "+PONG\r\n", mover.do("PING"))
	})
}
