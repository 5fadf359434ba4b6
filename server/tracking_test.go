package server_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/keyspace/entry"
)

// invalidated is the push that a tracking client is sent for one key.
func invalidated(key string) string {
	return ">2\r\n" + bulk("invalidate") + array(bulk(key))
}

// invalidatedAll is the one for a flush.
const invalidatedAll = ">2\r\n$10\r\ninvalidate\r\n_\r\n"

// tracker is a RESP3 client that tracks with the given options.
func (f *fixture) tracker(options ...string) *client {
	f.t.Helper()
	c := f.dial()
	require.Contains(f.t, c.do("HELLO", "3"), "%7")
	require.Equal(f.t, okReply, c.do(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...))
	return c
}

// TestTrackedReadIsInvalidatedByWhatTimeTakes: a key that expires is told of by whoever
// finds it so, be that the sweep or a read, once, and not to the one whose first read it
// was.
func TestTrackedReadIsInvalidatedByWhatTimeTakes(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		a, b, other := f.tracker(), f.tracker(), f.dial()
		for _, key := range []string{"swept", "read"} {
			other.do("SET", key, "v", "PX", "50")
			require.Equal(t, bulk("v"), a.do("GET", key))
			f.clock.Advance(60 * time.Millisecond)
			if key == "swept" {
				f.Keyspace().Sweep(1 << 20)
			} else {
				require.Equal(t, "_\r\n", b.do("GET", key))
			}
			require.Equal(t, invalidated(key), a.reply())
		}
		require.Equal(t, "+PONG\r\n", b.do("PING"))
		other.do("SET", "read", "w")
		require.Equal(t, invalidated("read"), b.reply(), "it was still registered")
		require.Equal(t, "+PONG\r\n", a.do("PING"))
	})
}

// TestTrackedLimiterIsInvalidatedByEachCallThatChangesIt: the state of a limiter is a
// value like any other, and a denied call leaves it alone.
func TestTrackedLimiterIsInvalidatedByEachCallThatChangesIt(t *testing.T) {
	f := start(t, "goroutine")
	a, b := f.tracker(), f.dial()
	for _, call := range [][]string{
		{"CL.THROTTLE", "k0", "0", "1", "60"},
		{"SW.ALLOW", "k1", "1", "60"},
		{"TB.ACQUIRE", "k2", "1", "1", "60"},
		{"CC.ACQUIRE", "k3", "1", "60", "me"},
	} {
		require.Equal(t, ":0\r\n", a.do("EXISTS", call[1]))
		require.NotContains(t, b.do(call...), "-ERR", call[0])
		require.Equal(t, invalidated(call[1]), a.reply(), call[0])
	}
	require.Equal(t, ":1\r\n", a.do("EXISTS", "k0"))
	b.do("CL.THROTTLE", "k0", "0", "1", "60")
	require.Equal(t, "+PONG\r\n", a.do("PING"))
}

// TestUnknownCommandEndsClientCaching: CLIENT CACHING is about the next command, and a
// command that does not exist is one. Redis 7.0.15 answers the same.
func TestUnknownCommandEndsClientCaching(t *testing.T) {
	f := start(t, "goroutine")
	a, other := f.tracker("OPTIN"), f.dial()
	for _, unknown := range [][]string{{"NONSENSE"}, {"CONFIG", "NONSENSE"}, {"CLIENT", "NONSENSE"}, {"GET"}} {
		require.Equal(t, okReply, a.do("CLIENT", "CACHING", "YES"))
		require.Contains(t, a.do(unknown...), "-ERR")
		a.do("GET", "k")
		other.do("SET", "k", "v")
		require.Equal(t, "+PONG\r\n", a.do("PING"), unknown)
	}
}

// TestTrackingTableForgetsWhatItHasNoRoomFor: beyond tracking-table-max-keys a key
// leaves the table, and who had read it is told so.
func TestTrackingTableForgetsWhatItHasNoRoomFor(t *testing.T) {
	f := start(t, "goroutine", "--tracking-table-max-keys", "10")
	a, b := f.tracker(), f.dial()
	cached := make(map[string]bool)
	for i := range 30 {
		key := fmt.Sprintf("k%d", i)
		a.do("GET", key)
		cached[key] = true
		if i < 10 {
			continue
		}
		push := a.reply()
		forgotten := strings.Split(push, "\r\n")[5]
		require.Equal(t, invalidated(forgotten), push)
		require.True(t, cached[forgotten], forgotten)
		delete(cached, forgotten)
	}
	require.EqualValues(t, 10, b.infoNumber("tracking_total_keys"))
	require.EqualValues(t, 10, b.infoNumber("tracking_total_items"))
	for range 10 {
		for key := range cached {
			b.do("SET", key, "v")
			require.Equal(t, invalidated(key), a.reply())
			delete(cached, key)
			break
		}
	}
	require.EqualValues(t, 0, b.infoNumber("tracking_total_keys"))
}

// TestTrackingTableKeepsToMaxmemory: what the table takes counts as memory, and once
// that is full the table does not grow. There is no janitor, who would count again at any
// time and so decide when memory is full.
func TestTrackingTableKeepsToMaxmemory(t *testing.T) {
	e := startEngine(t, "goroutine", func(st env.Store) env.Store { return st })
	e.ks.SetMaxMemory(2 << 20)
	a, b := e.dial(), e.dial()
	require.Contains(t, a.do("HELLO", "3"), "%7")
	require.Equal(t, okReply, a.do("CLIENT", "TRACKING", "ON"))
	long := strings.Repeat("x", 10_000)
	full := 0
	for i := range 1000 {
		if i == 300 {
			e.ks.SetBeside(e.ClientMemory()) // as the janitor does
			full = int(e.ClientMemory())
			require.Greater(t, full, 2<<20)
		}
		a.command("GET", fmt.Sprintf("k%d%s", i, long))
		for push := a.reply(); push != "_\r\n"; push = a.reply() {
			require.Contains(t, push, "invalidate")
		}
	}
	require.LessOrEqual(t, int(e.ClientMemory()), full)
	require.Less(t, b.infoNumber("tracking_total_keys"), int64(305))
}

// TestTrackingNotifiesThatTheRedirectIsGone: who redirects to a client that has left is
// told so in the place of each invalidation.
func TestTrackingNotifiesThatTheRedirectIsGone(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		b, other := f.dial(), f.dial()
		id := b.id()
		a := f.tracker("REDIRECT", id)
		a.do("GET", "k")
		require.NoError(t, b.Close())
		eventually(t, "gone", func() bool { return !strings.Contains(other.do("CLIENT", "LIST"), "id="+id+" ") })
		other.do("SET", "k", "v")
		require.Equal(t, ">2\r\n"+bulk("tracking-redir-broken")+":"+id+"\r\n", a.reply())
		require.Contains(t, a.do("CLIENT", "TRACKINGINFO"), bulk("broken_redirect"))
		require.Contains(t, a.do("CLIENT", "INFO"), " flags=tR ")
		require.Equal(t, okReply, a.do("CLIENT", "TRACKING", "ON"))
		require.NotContains(t, a.do("CLIENT", "TRACKINGINFO"), bulk("broken_redirect"))
	})
}

// TestTrackingIsCountedAndForgotten: INFO counts what tracks, and nothing of it is left
// of a client that has gone away or has ended it.
func TestTrackingIsCountedAndForgotten(t *testing.T) {
	f := start(t, "goroutine")
	other := f.dial()
	before := f.Engine().ClientMemory()
	var all []*client
	for i := range 5 {
		all = append(all, f.tracker("BCAST", "PREFIX", "same", "PREFIX", fmt.Sprintf("own%d", i)))
	}
	require.EqualValues(t, 5, other.infoNumber("tracking_clients"))
	require.EqualValues(t, 6, other.infoNumber("tracking_total_prefixes"))
	all[0].do("CLIENT", "TRACKING", "OFF")
	all[1].do("RESET")
	for _, c := range all[2:] {
		require.NoError(t, c.Close())
	}
	eventually(t, "forgotten", func() bool {
		return other.infoNumber("tracking_clients") == 0 && other.infoNumber("tracking_total_prefixes") == 0
	})
	require.Equal(t, before, f.Engine().ClientMemory())
}

// TestReadThroughScriptIsTracked: what a script reads is remembered for its caller, also
// of a script that runs in the background and in a transaction, and told behind the reply.
func TestReadThroughScriptIsTracked(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		a, other := f.tracker(), f.dial()
		const long = "local n = 0 while n < tonumber(ARGV[1]) do n = n + 1 end "
		for _, script := range []string{"", long} {
			for _, rounds := range []string{"1", "300000"} {
				other.do("SET", "k", "v")
				require.Equal(t, bulk("v"), a.do("EVAL", script+"return redis.call('get', KEYS[1])", "1", "k", rounds))
				other.do("SET", "k", "w")
				require.Equal(t, invalidated("k"), a.reply())
				require.Equal(t, bulk("w"), a.do("EVAL",
					script+"local v = redis.call('get', KEYS[1]) redis.call('set', KEYS[1], 'x') "+script+"return v", "1", "k", rounds))
				require.Equal(t, invalidated("k"), a.reply())
				a.send("MULTI\r\nGET k\r\n")
				a.command("EVAL", script+"return redis.call('set', KEYS[1], 'y')", "1", "k", rounds)
				a.send("EXEC\r\n")
				a.expect(okReply, queuedReply, queuedReply, array(bulk("x"), okReply), invalidated("k"))
			}
		}
		require.Equal(t, "+PONG\r\n", a.do("PING"))
	})
}

// TestManyReadersAreInvalidatedInTheBackground changes a key that thousands have read.
// Each of them is notified, and neither the writer nor anybody else waits for that.
func TestManyReadersAreInvalidatedInTheBackground(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		const n = 1000
		f := start(t, kind, "--tcp-backlog", "2048")
		other := f.dial()
		readers := make([]*client, n)
		for i := range readers {
			readers[i] = f.tracker()
			readers[i].do("GET", "k")
		}
		require.EqualValues(t, n, other.infoNumber("tracking_total_items"))
		require.EqualValues(t, 1, other.infoNumber("tracking_total_keys"))
		require.Equal(t, okReply, other.do("SET", "k", "v"))
		for _, r := range readers {
			require.Equal(t, invalidated("k"), r.reply())
		}
		eventually(t, "free", func() bool { return f.Engine().ClientMemory() == 0 })
	})
}

// TestTrackingClientThatDoesNotReadIsClosed: an invalidation is never dropped. Who does
// not take them is closed when they are too many, and so loses all that it has cached.
func TestTrackingClientThatDoesNotReadIsClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--client-output-buffer-limit", "pubsub 64kb 0 0")
		other := f.dial()
		a := f.tracker("BCAST")
		require.NoError(t, a.Conn.(*net.TCPConn).SetReadBuffer(4096))
		other.do("CLIENT", "SETNAME", "other")
		key := strings.Repeat("k", 16_000)
		eventually(t, "closed", func() bool {
			for i := range 100 {
				other.do("SET", fmt.Sprintf("%d%s", i, key), "v")
			}
			return other.infoNumber("tracking_clients") == 0
		})
		require.Contains(t, f.log.String(), "too many unread replies")
	})
}

// TestPrefixesAreBounded: a client cannot have the server keep prefixes without end, and
// a command with thousands of them costs nobody else anything.
func TestPrefixesAreBounded(t *testing.T) {
	f := start(t, "goroutine")
	a := f.dial()
	many := func(n int) []string {
		args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
		for i := range n {
			args = append(args, "PREFIX", fmt.Sprintf("%06d", i))
		}
		return args
	}
	require.Equal(t, "-ERR too many prefixes\r\n", a.do(many(4097)...))
	require.Equal(t, okReply, a.do(many(4096)...))
	require.Equal(t, "-ERR too many prefixes\r\n", a.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x"))
	require.Contains(t, a.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "0040951"), "overlaps with an existing prefix '004095'")
	require.Equal(t, okReply, a.do("CLIENT", "TRACKING", "OFF"))
	require.Equal(t, "-ERR prefix is too long, at most 16384 bytes\r\n",
		a.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", strings.Repeat("p", 16<<10+1)))
	require.EqualValues(t, 0, a.infoNumber("tracking_total_prefixes"))
}

// TestNothingOfTrackingIsKept: what replays the log finds no trace of who has read what,
// and tells nobody what it loads.
func TestNothingOfTrackingIsKept(t *testing.T) {
	f := start(t, "goroutine", "--appendonly", "yes")
	a, b := f.tracker(), f.dial()
	a.do("GET", "k")
	b.do("SET", "k", "v")
	require.Equal(t, invalidated("k"), a.reply())
	a.do("GET", "k")
	require.NoError(t, f.Keyspace().Restore(0, []byte("k"), entry.Entry{Kind: entry.String, Value: []byte("w"), Expiry: entry.NoExpiry}))
	require.Equal(t, "+PONG\r\n", a.do("PING"))
}
