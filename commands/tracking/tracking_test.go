package tracking_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/inproc"
)

// invalidated is the push message that invalidates one key.
func invalidated(key string) string {
	return ">2\r\n" + inproc.Bulk("invalidate") + inproc.Array(inproc.Bulk(key))
}

// invalidatedAll is the push message that invalidates all keys.
const invalidatedAll = ">2\r\n$10\r\ninvalidate\r\n_\r\n"

// tracker returns a RESP3 client that tracks with the given options.
func tracker(t *testing.T, f *inproc.Node, options ...string) *inproc.Client {
	t.Helper()
	c := f.Dial()
	require.Contains(t, c.Do("HELLO", "3"), "%7")
	require.Equal(t, inproc.OK, c.Do(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...))
	return c
}

// TestTrackedReadIsInvalidatedByWhatTimeTakes: an expired key is invalidated once, when the sweep
// or a read finds it expired. The client whose first read finds it gets no message.
func TestTrackedReadIsInvalidatedByWhatTimeTakes(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		a, b, other := tracker(t, f), tracker(t, f), f.Dial()
		for _, key := range []string{"swept", "read"} {
			other.Do("SET", key, "v", "PX", "50")
			require.Equal(t, inproc.Bulk("v"), a.Do("GET", key))
			w.Advance(60 * time.Millisecond)
			if key == "swept" {
				f.Keyspace().Sweep(1 << 20)
			} else {
				require.Equal(t, "_\r\n", b.Do("GET", key))
			}
			require.Equal(t, invalidated(key), a.Reply())
		}
		require.Equal(t, "+PONG\r\n", b.Do("PING"))
		other.Do("SET", "read", "w")
		require.Equal(t, invalidated("read"), b.Reply(), "it was still registered")
		require.Equal(t, "+PONG\r\n", a.Do("PING"))
	})
}

// TestTrackedLimiterIsInvalidatedByEachCallThatChangesIt: a call that changes the state of a
// limiter invalidates its key, and a denied call does not.
func TestTrackedLimiterIsInvalidatedByEachCallThatChangesIt(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		a, b := tracker(t, f), f.Dial()
		for _, call := range [][]string{
			{"CL.THROTTLE", "k0", "0", "1", "60"},
			{"SW.ALLOW", "k1", "1", "60"},
			{"TB.ACQUIRE", "k2", "1", "1", "60"},
			{"CC.ACQUIRE", "k3", "1", "60", "me"},
		} {
			require.Equal(t, ":0\r\n", a.Do("EXISTS", call[1]))
			require.NotContains(t, b.Do(call...), "-ERR", call[0])
			require.Equal(t, invalidated(call[1]), a.Reply(), call[0])
		}
		require.Equal(t, ":1\r\n", a.Do("EXISTS", "k0"))
		b.Do("CL.THROTTLE", "k0", "0", "1", "60")
		require.Equal(t, "+PONG\r\n", a.Do("PING"))
	})
}

// TestUnknownCommandEndsClientCaching: CLIENT CACHING applies to the next command, even if that
// is unknown. Redis 7.0.15 does the same.
func TestUnknownCommandEndsClientCaching(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		a, other := tracker(t, f, "OPTIN"), f.Dial()
		for _, unknown := range [][]string{{"NONSENSE"}, {"CONFIG", "NONSENSE"}, {"CLIENT", "NONSENSE"}, {"GET"}} {
			require.Equal(t, inproc.OK, a.Do("CLIENT", "CACHING", "YES"))
			require.Contains(t, a.Do(unknown...), "-ERR")
			a.Do("GET", "k")
			other.Do("SET", "k", "v")
			require.Equal(t, "+PONG\r\n", a.Do("PING"), unknown)
		}
	})
}

// TestTrackingTableForgetsWhatItHasNoRoomFor: beyond tracking-table-max-keys an entry is evicted,
// and the readers of its key get an invalidation.
func TestTrackingTableForgetsWhatItHasNoRoomFor(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--tracking-table-max-keys", "10")
		a, b := tracker(t, f), f.Dial()
		cached := make(map[string]bool)
		for i := range 30 {
			key := fmt.Sprintf("k%d", i)
			a.Do("GET", key)
			cached[key] = true
			if i < 10 {
				continue
			}
			push := a.Reply()
			forgotten := strings.Split(push, "\r\n")[5]
			require.Equal(t, invalidated(forgotten), push)
			require.True(t, cached[forgotten], forgotten)
			delete(cached, forgotten)
		}
		require.EqualValues(t, 10, b.InfoNumber("tracking_total_keys"))
		require.EqualValues(t, 10, b.InfoNumber("tracking_total_items"))
		for range 10 {
			for key := range cached {
				b.Do("SET", key, "v")
				require.Equal(t, invalidated(key), a.Reply())
				delete(cached, key)
				break
			}
		}
		require.EqualValues(t, 0, b.InfoNumber("tracking_total_keys"))
	})
}

// TestTrackingTableKeepsToMaxmemory: the table counts towards maxmemory, and does not grow while
// memory is full. The clock stands still, so the janitor does not update its view of whether
// memory is full.
func TestTrackingTableKeepsToMaxmemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		f.Keyspace().SetMaxMemory(2 << 20)
		a, b := f.Dial(), f.Dial()
		require.Contains(t, a.Do("HELLO", "3"), "%7")
		require.Equal(t, inproc.OK, a.Do("CLIENT", "TRACKING", "ON"))
		long := strings.Repeat("x", 10_000)
		full := 0
		for i := range 1000 {
			if i == 300 {
				f.Keyspace().SetBeside(f.Engine().ClientMemory()) // as the janitor does
				full = int(f.Engine().ClientMemory())
				require.Greater(t, full, 2<<20)
			}
			a.Command("GET", fmt.Sprintf("k%d%s", i, long))
			for push := a.Reply(); push != "_\r\n"; push = a.Reply() {
				require.Contains(t, push, "invalidate")
			}
		}
		require.LessOrEqual(t, int(f.Engine().ClientMemory()), full)
		require.Less(t, b.InfoNumber("tracking_total_keys"), int64(305))
	})
}

// TestTrackingNotifiesThatTheRedirectIsGone: a client that redirects to a disconnected client
// gets tracking-redir-broken in place of each invalidation.
func TestTrackingNotifiesThatTheRedirectIsGone(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		b, other := f.Dial(), f.Dial()
		id := b.ID()
		a := tracker(t, f, "REDIRECT", id)
		a.Do("GET", "k")
		require.NoError(t, b.Close())
		w.Settle()
		require.NotContains(t, other.Do("CLIENT", "LIST"), "id="+id+" ")
		other.Do("SET", "k", "v")
		require.Equal(t, ">2\r\n"+inproc.Bulk("tracking-redir-broken")+":"+id+"\r\n", a.Reply())
		require.Contains(t, a.Do("CLIENT", "TRACKINGINFO"), inproc.Bulk("broken_redirect"))
		require.Contains(t, a.Do("CLIENT", "INFO"), " flags=tR ")
		require.Equal(t, inproc.OK, a.Do("CLIENT", "TRACKING", "ON"))
		require.NotContains(t, a.Do("CLIENT", "TRACKINGINFO"), inproc.Bulk("broken_redirect"))
	})
}

// TestTrackingIsCountedAndForgotten: INFO counts tracking clients, and no longer counts a client
// that has disconnected or turned tracking off.
func TestTrackingIsCountedAndForgotten(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		other := f.Dial()
		before := f.Engine().ClientMemory()
		var all []*inproc.Client
		for i := range 5 {
			all = append(all, tracker(t, f, "BCAST", "PREFIX", "same", "PREFIX", fmt.Sprintf("own%d", i)))
		}
		require.EqualValues(t, 5, other.InfoNumber("tracking_clients"))
		require.EqualValues(t, 6, other.InfoNumber("tracking_total_prefixes"))
		all[0].Do("CLIENT", "TRACKING", "OFF")
		all[1].Do("RESET")
		for _, c := range all[2:] {
			require.NoError(t, c.Close())
		}
		w.Settle()
		require.Zero(t, other.InfoNumber("tracking_clients"))
		require.Zero(t, other.InfoNumber("tracking_total_prefixes"))
		require.Equal(t, before, f.Engine().ClientMemory())
	})
}

// TestReadThroughScriptIsTracked: keys that a script reads are registered for its caller, also in
// the background and in a transaction, and their invalidations come after the reply.
func TestReadThroughScriptIsTracked(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		a, other := tracker(t, f), f.Dial()
		const long = "local n = 0 while n < tonumber(ARGV[1]) do n = n + 1 end "
		for _, script := range []string{"", long} {
			for _, rounds := range []string{"1", "300000"} {
				other.Do("SET", "k", "v")
				require.Equal(t, inproc.Bulk("v"), a.Do("EVAL", script+"return redis.call('get', KEYS[1])", "1", "k", rounds))
				other.Do("SET", "k", "w")
				require.Equal(t, invalidated("k"), a.Reply())
				require.Equal(t, inproc.Bulk("w"), a.Do("EVAL",
					script+"local v = redis.call('get', KEYS[1]) redis.call('set', KEYS[1], 'x') "+script+"return v", "1", "k", rounds))
				require.Equal(t, invalidated("k"), a.Reply())
				a.Send("MULTI\r\nGET k\r\n")
				a.Command("EVAL", script+"return redis.call('set', KEYS[1], 'y')", "1", "k", rounds)
				a.Send("EXEC\r\n")
				a.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Array(inproc.Bulk("x"), inproc.OK), invalidated("k"))
			}
		}
		require.Equal(t, "+PONG\r\n", a.Do("PING"))
	})
}

// TestManyReadersAreInvalidatedInTheBackground changes a key that thousands of clients have read.
// Each of them is notified, and neither the writer nor another client waits for that.
func TestManyReadersAreInvalidatedInTheBackground(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const n = 1000
		f := w.Start("--tcp-backlog", "2048")
		other := f.Dial()
		readers := make([]*inproc.Client, n)
		for i := range readers {
			readers[i] = tracker(t, f)
			readers[i].Do("GET", "k")
		}
		require.EqualValues(t, n, other.InfoNumber("tracking_total_items"))
		require.EqualValues(t, 1, other.InfoNumber("tracking_total_keys"))
		require.Equal(t, inproc.OK, other.Do("SET", "k", "v"))
		for _, r := range readers {
			require.Equal(t, invalidated("k"), r.Reply())
		}
		w.Settle()
		require.Zero(t, f.Engine().ClientMemory())
	})
}

// TestPrefixesAreBounded: the prefixes of one client have a bound, and a command with thousands
// of prefixes does not delay other clients.
func TestPrefixesAreBounded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		a := f.Dial()
		many := func(n int) []string {
			args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
			for i := range n {
				args = append(args, "PREFIX", fmt.Sprintf("%06d", i))
			}
			return args
		}
		require.Equal(t, "-ERR too many prefixes\r\n", a.Do(many(4097)...))
		require.Equal(t, inproc.OK, a.Do(many(4096)...))
		require.Equal(t, "-ERR too many prefixes\r\n", a.Do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x"))
		require.Contains(t, a.Do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "0040951"), "overlaps with an existing prefix '004095'")
		require.Equal(t, inproc.OK, a.Do("CLIENT", "TRACKING", "OFF"))
		require.Equal(t, "-ERR prefix is too long, at most 16384 bytes\r\n",
			a.Do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", strings.Repeat("p", 16<<10+1)))
		require.EqualValues(t, 0, a.InfoNumber("tracking_total_prefixes"))
	})
}

// TestNothingOfTrackingIsKept: a restart from the log restores no tracking state, and loading
// sends no invalidations.
func TestNothingOfTrackingIsKept(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes")
		a, b := tracker(t, f), f.Dial()
		a.Do("GET", "k")
		b.Do("SET", "k", "v")
		require.Equal(t, invalidated("k"), a.Reply())
		a.Do("GET", "k")
		require.NoError(t, f.Keyspace().Restore(0, []byte("k"), entry.Entry{Kind: entry.String, Value: []byte("w"), Expiry: entry.NoExpiry}))
		require.Equal(t, "+PONG\r\n", a.Do("PING"))
	})
}

// TestReplicaTellsOfEndedKeys: a replica sends the invalidation of an expired key as soon as its
// primary can no longer prolong it. Caches beside a replica are right within a second, and DBSIZE
// does not count expired keys.
func TestReplicaTellsOfEndedKeys(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary, replica := w.Start(), w.Start()
		replica.Follow(primary)
		require.Equal(t, inproc.OK, primary.Dial().Do("SET", "k", "v", "PX", "500"))
		primary.Agree(replica)
		c := tracker(t, replica)
		require.Equal(t, inproc.Bulk("v"), c.Do("GET", "k"))
		w.Advance(time.Second)
		require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", c.Reply())
		require.Equal(t, ":0\r\n", replica.Dial().Do("DBSIZE"))
	})
}
