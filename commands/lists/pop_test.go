package lists_test

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

// waiting checks that n clients wait once nothing more can happen.
func waiting(t *testing.T, w *inproc.World, admin *inproc.Client, n int) {
	t.Helper()
	w.Settle()
	require.Equal(t, fmt.Sprint(n), admin.Info("blocked_clients"))
}

// tracker returns a RESP3 client that tracks what it reads, without its own changes.
func tracker(t *testing.T, s *inproc.Node) *inproc.Client {
	t.Helper()
	c := s.Dial()
	require.Contains(t, c.Do("HELLO", "3"), "%7")
	require.Equal(t, inproc.OK, c.Do("CLIENT", "TRACKING", "ON", "NOLOOP"))
	return c
}

// TestPopsOutlastTheirTimeoutInWholeMilliseconds: a client that reads a clock of whole
// milliseconds before and after sees a wait of more than the timeout, wherever in a millisecond
// it begins, as with Redis.
func TestPopsOutlastTheirTimeoutInWholeMilliseconds(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for _, timeout := range []int64{1, 50, 1000} {
			for range 10 {
				w.Advance(370 * time.Microsecond)
				began := time.Now().UnixMilli()
				require.Equal(t, "*-1\r\n", c.Do("BLPOP", "none", fmt.Sprintf("%d.%03d", timeout/1000, timeout%1000)))
				require.Equal(t, timeout+1, time.Now().UnixMilli()-began)
			}
		}
	})
}

// TestEachElementIsPoppedOnce: however elements are pushed, and while many clients wait under
// several keys or move elements on, each element reaches exactly one client.
func TestEachElementIsPoppedOnce(t *testing.T) {
	const poppers, movers, pushers, each = 60, 10, 8, 150
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		var all, pushing sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]int{}
		for i := range poppers {
			c := s.Dial()
			all.Go(func() {
				for {
					call := []string{"BLPOP a b in 0", "BRPOP b a 0", "BLMPOP 0 2 b a LEFT COUNT 3", "BLPOP out 0"}[i%4]
					c.Send(call + "\r\n")
					values := strings.Split(c.Reply(), "\r\n")
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
			c := s.Dial()
			all.Go(func() {
				for c.Do("BLMOVE", "in", "out", "LEFT", "RIGHT", "0") != inproc.Bulk("stop") {
				}
			})
		}
		for i := range pushers {
			c := s.Dial()
			pushing.Go(func() {
				for n := range each {
					e := fmt.Sprintf("e:%d:%d", i, n)
					switch n % 5 {
					case 0:
						c.Do("RPUSH", "a", e)
					case 1:
						c.Do("LPUSH", "b", e)
					case 2:
						c.Do("LPUSH", "in", e)
					case 3:
						c.Send("MULTI\r\nRPUSH in " + e + "\r\nEXEC\r\n")
						for range 3 {
							c.Reply()
						}
					default:
						c.Do("EVAL", "local function f() redis.call('rpush', 'tmp', ARGV[1]) redis.call('lmove', 'tmp', KEYS[1], 'LEFT', 'LEFT') end f()", "1", "b", e)
					}
				}
			})
		}
		pushing.Wait()
		admin := s.Dial()
		waiting(t, w, admin, poppers+movers)
		mu.Lock()
		require.Len(t, seen, pushers*each, "all have been popped")
		mu.Unlock()
		require.Equal(t, ":0\r\n", admin.Do("EXISTS", "a", "b", "in", "out", "tmp"))
		// The movers stop after one more element, which the poppers ignore.
		for range movers + poppers {
			admin.Do("RPUSH", "a", "end")
			admin.Do("RPUSH", "in", "stop")
			admin.Do("RPUSH", "out", "end")
		}
		for range poppers {
			admin.Do("RPUSH", "b", "end")
		}
		all.Wait()
		for e, n := range seen {
			require.Equal(t, 1, n, e)
		}
		require.Zero(t, s.Keyspace().PopWaiting())
	})
}

// TestPopWaiterLooksAtItsKeysInOrder: a waiter continues to wait when one of its keys gets
// another type. Once there is an element in another key, the reply is an error if the key of
// another type comes first, and nothing is taken, as in Redis 7.2. This holds whichever shards
// the keys are in and whatever is locked.
func TestPopWaiterLooksAtItsKeysInOrder(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin, waiter := s.Dial(), s.Dial()
		for i := range 12 {
			a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
			for call, feed := range map[string]string{
				"BLPOP " + a + " " + b + " 0":              "RPUSH " + b + " 1",
				"BLMPOP 0 2 " + a + " " + b + " LEFT":      "RPUSH " + b + " 1",
				"BZPOPMIN " + a + " " + b + " 0":           "ZADD " + b + " 1 1",
				"BZMPOP 0 2 " + a + " " + b + " MAX COUNT": "ZADD " + b + " 1 1",
				"BLPOP " + b + " " + a + " 0":              "RPUSH " + b + " 1",
				"BZMPOP 0 2 " + b + " " + a + " MIN COUNT": "ZADD " + b + " 1 1",
			} {
				first := strings.Index(call, a) < strings.Index(call, b)
				if strings.HasSuffix(call, "COUNT") {
					call += " 2"
				}
				for _, others := range []string{"SET " + a + " x", "SADD " + a + " x"} {
					for _, together := range []bool{false, true} {
						waiter.Send(call + "\r\n")
						waiting(t, w, admin, 1)
						if together {
							admin.Send("MULTI\r\n" + others + "\r\n" + feed + "\r\nEXEC\r\n")
							for range 4 {
								admin.Reply()
							}
						} else {
							admin.Do(strings.Fields(others)...)
							require.Equal(t, "1", admin.Info("blocked_clients"))
							admin.Do(strings.Fields(feed)...)
						}
						got := waiter.Reply()
						if first {
							require.Contains(t, got, "-WRONGTYPE", "%s; %s; %s", call, others, feed)
						} else {
							require.Contains(t, got, inproc.Bulk(b), "%s; %s; %s", call, others, feed)
						}
						require.Equal(t, fmt.Sprintf(":%d\r\n", map[bool]int{true: 1}[first]), admin.Do("EXISTS", b))
						admin.Do("DEL", a, b)
					}
				}
			}
		}
	})
}

// TestPopWaitersThatLeave: a client that has disconnected or was killed takes nothing, and the
// next one is served. A client that still waits when the server stops is closed.
func TestPopWaitersThatLeave(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin, gone, killed, next, last := s.Dial(), s.Dial(), s.Dial(), s.Dial(), s.Dial()
		id := killed.ID()
		for i, c := range []*inproc.Client{gone, killed, next, last} {
			c.Send("BLPOP l m 0\r\nPING\r\n")
			waiting(t, w, admin, i+1)
		}
		require.NoError(t, gone.Close())
		waiting(t, w, admin, 3)
		require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "ID", id))
		waiting(t, w, admin, 2)
		require.Equal(t, ":1\r\n", admin.Do("RPUSH", "m", "x"))
		next.Expect("*2\r\n"+inproc.Bulk("m")+inproc.Bulk("x"), inproc.Pong)
		waiting(t, w, admin, 1)
		require.Equal(t, 2, s.Keyspace().PopWaiting(), "only the last is left, under two keys")
		require.NoError(t, s.Stop())
		last.ExpectEnd()
	})
}

// TestPopsBehindAPause: while changes are paused no waiter is served, since no client can push,
// and commands that were sent meanwhile take effect after the pause.
func TestPopsBehindAPause(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin, waiter, pusher := s.Dial(), s.Dial(), s.Dial()
		waiter.Send("BLPOP l 0\r\n")
		waiting(t, w, admin, 1)
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "PAUSE", "100000", "WRITE"))
		pusher.Send("RPUSH l x\r\n")
		waiting(t, w, admin, 2)
		waiter.Silent()
		pusher.Silent()
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "UNPAUSE"))
		waiter.Expect("*2\r\n" + inproc.Bulk("l") + inproc.Bulk("x"))
		pusher.Expect(":1\r\n")
	})
}

// TestPopsAreKept: an element that a waiter took is gone after a restart, and an element that it
// moved is in the destination.
func TestPopsAreKept(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--appendonly", "yes", "--appendfsync", "always")
		admin, a, b := s.Dial(), s.Dial(), s.Dial()
		a.Send("BLPOP l 0\r\n")
		waiting(t, w, admin, 1)
		b.Send("BLMOVE l m LEFT LEFT 0\r\n")
		waiting(t, w, admin, 2)
		require.Equal(t, ":3\r\n", admin.Do("RPUSH", "l", "1", "2", "3"))
		a.Expect("*2\r\n" + inproc.Bulk("l") + inproc.Bulk("1"))
		b.Expect(inproc.Bulk("2"))
		require.NoError(t, s.Stop())
		s.Restart()
		admin = s.Dial()
		require.Equal(t, inproc.Array(inproc.Bulk("3")), admin.Do("LRANGE", "l", "0", "-1"))
		require.Equal(t, inproc.Array(inproc.Bulk("2")), admin.Do("LRANGE", "m", "0", "-1"))
	})
}

// TestPopWaitersAreBounded: the memory for the keys of a waiter counts for its client, has a
// bound, and is freed.
func TestPopWaitersAreBounded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin, waiter := s.Dial(), s.Dial()
		keys := func(n, length int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, " key:%0*d", length, i)
			}
			return b.String()
		}
		words := strings.Fields("BLPOP" + keys(64_000, 1) + " 0")
		require.Equal(t, "-ERR too many keys to wait for\r\n", waiter.Do(words...))
		require.Zero(t, s.Keyspace().PopWaiting())
		words = strings.Fields("BLPOP" + keys(16_000, 5) + " 0")
		waiter.Command(words...)
		waiting(t, w, admin, 1)
		require.Equal(t, 16_000, s.Keyspace().PopWaiting(), "it is in all queues")
		require.Regexp(t, `multi-mem=4\d{6} .*cmd=blpop`, admin.Do("CLIENT", "LIST"), "it counts as held")
		require.Equal(t, ":1\r\n", admin.Do("LPUSH", "key:15999", "x"))
		waiter.Expect("*2\r\n" + inproc.Bulk("key:15999") + inproc.Bulk("x"))
		require.Zero(t, s.Keyspace().PopWaiting())
		require.Equal(t, inproc.Pong, waiter.Do("PING"))
		require.NotRegexp(t, `multi-mem=4\d{6}`, admin.Do("CLIENT", "LIST"))
	})
}

// TestServedMoveCountsAsTheWaitersOwnWrite: the move of a served waiter is a write of the waiter
// and not of the client whose push served it: that client is notified of the change even with
// NOLOOP.
func TestServedMoveCountsAsTheWaitersOwnWrite(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin, pusher, mover := s.Dial(), tracker(t, s), tracker(t, s)
		for _, c := range []*inproc.Client{pusher, mover} {
			require.Equal(t, ":0\r\n", c.Do("LLEN", "to"))
		}
		mover.Send("BLMOVE from to LEFT LEFT 0\r\n")
		waiting(t, w, admin, 1)
		pusher.Send("RPUSH from x\r\n")
		pusher.Expect(":1\r\n", ">2\r\n"+inproc.Bulk("invalidate")+inproc.Array(inproc.Bulk("to")))
		mover.Expect(inproc.Bulk("x"))
		require.Equal(t, inproc.Pong, mover.Do("PING"))
	})
}

// TestPopsOfManyKeysThatEnd: a wait for very many keys ends with its timeout, by CLIENT UNBLOCK
// and when its client disconnects, whether it has joined the queues by then or not.
func TestPopsOfManyKeysThatEnd(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin, c := s.Dial(), s.Dial()
		id := c.ID()
		args := []string{"BLPOP"}
		for i := range 5000 {
			args = append(args, "k"+strconv.Itoa(i))
		}
		for i := range 6 {
			c.Command(append(args, "0")...)
			if i%2 == 0 {
				w.Settle()
			}
			for admin.Info("blocked_clients") != "1" { // joining so many queues takes a while
			}
			require.Equal(t, ":1\r\n", admin.Do("CLIENT", "UNBLOCK", id))
			require.Equal(t, "*-1\r\n", c.Reply())
		}
		c.Command(append(args, "1.5")...)
		waiting(t, w, admin, 1)
		began := time.Now()
		require.Equal(t, "*-1\r\n", c.Reply())
		require.Equal(t, 1501*time.Millisecond, time.Since(began).Truncate(time.Millisecond))
		c.Command(append(args, "0")...)
		waiting(t, w, admin, 1)
		require.NoError(t, c.Close())
		waiting(t, w, admin, 0)
		require.Zero(t, s.Keyspace().PopWaiting(), "waiters left in a queue")
		require.Equal(t, ":1\r\n", admin.Do("RPUSH", "k1", "v"))
		require.Equal(t, inproc.Bulk("v"), admin.Do("LPOP", "k1"), "nobody has taken it")
	})
}

// TestMoveBehindManyOthers: a client that waits for an element to move is served, although many
// others wait for a sorted set under the same key before it.
func TestMoveBehindManyOthers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin := s.Dial()
		for i := range 20 {
			s.Dial().Send("BZPOPMIN k 0\r\n")
			waiting(t, w, admin, i+1)
		}
		mover := s.Dial()
		mover.Send("BLMOVE k to LEFT LEFT 0\r\n")
		waiting(t, w, admin, 21)
		admin.Do("RPUSH", "k", "x")
		require.Equal(t, inproc.Bulk("x"), mover.Reply())
		require.Equal(t, ":1\r\n", admin.Do("LLEN", "to"))
	})
}
