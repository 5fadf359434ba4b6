package scripting_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// plenty is more memory than any script needs.
const plenty = math.MaxInt64 - 1

// roomOfScripts starts a server in which scripts may use the memory that room says.
func roomOfScripts(w *inproc.World) (s *inproc.Node, room *atomic.Int64) {
	room = new(atomic.Int64)
	room.Store(plenty)
	return w.StartWith(func(o *server.Options) {
		o.Env = func(o *env.Options) {
			o.ScriptRoom = func() (bound, kept int64) { return room.Load(), 0 }
		}
	}), room
}

// holding returns a client that keeps a large reply unread.
func holding(t *testing.T, w *inproc.World, s *inproc.Node, keys []string) *inproc.Client {
	t.Helper()
	holder := s.Dial()
	holder.Command(append([]string{"MGET"}, keys...)...)
	w.Settle()
	require.Positive(t, s.Engine().LargeReplies(), "a reply is held")
	return holder
}

// build is a part of a script that needs much memory.
const build = "local s = string.rep('x', 3000000) "

// TestScriptThatLacksMemoryWaitsForReplies: if replies to other clients take the memory that a
// script needs, the script is run again after they have left, on the loop and elsewhere.
func TestScriptThatLacksMemoryWaitsForReplies(t *testing.T) {
	for name, source := range map[string]string{
		"straight":  build + "return #s",
		"aside":     "local n = 0 while n < 1 do n = n + 1 end " + build + "return #s",
		"moved":     "local n = 0 while n < 100000 do n = n + 1 end " + build + "return #s",
		"its reply": build + "local r = {} for i = 1, 3 do r[i] = s end return #r * 1000000",
		"long":      build + "return #s " + strings.Repeat(" ", 4<<10),
		"reads":     "redis.call('GET', 'value:1') " + build + "return #s",
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				s, room := roomOfScripts(w)
				c := s.Dial()
				holder := holding(t, w, s, c.FillShort())
				room.Store(1)
				c.Command("EVAL", source, "0")
				w.Settle()
				require.True(t, s.Engine().Pressed(), "it waits")
				require.Equal(t, inproc.Pong, s.Dial().Do("PING"), "and nobody else does")
				room.Store(plenty)
				require.NoError(t, holder.Close())
				require.Equal(t, ":3000000\r\n", c.Reply())
			})
		})
	}
}

// TestScriptThatLacksMemoryFails: a script that lacks memory fails if no replies take it, or if
// the script may have changed something already.
func TestScriptThatLacksMemoryFails(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s, room := roomOfScripts(w)
		c := s.Dial()
		keys := c.FillShort()
		room.Store(1)
		require.Contains(t, c.Do("EVAL", build+"return #s", "0"), "-ERR not enough memory", "nobody else has any")
		room.Store(plenty)
		holder := holding(t, w, s, keys)
		room.Store(1)
		require.Contains(t, c.Do("EVAL", "redis.call('INCR', 'n') "+build+"return #s", "0"), "-ERR not enough memory", "it has written")
		require.Equal(t, inproc.Bulk("1"), c.Do("GET", "n"))
		c.Send("MULTI\r\n" + string(inproc.Encode(nil, "EVAL", build+"return #s", "0")) + "EXEC\r\n")
		c.Expect(inproc.OK, inproc.Queued)
		require.Contains(t, c.Reply(), "-ERR not enough memory", "a transaction has begun")
		require.NoError(t, holder.Close())
		w.Settle()
		require.Zero(t, s.Engine().LargeReplies(), "all is given back")
	})
}

// TestResultsOfScriptsAreNotTheirReaders: the result of a script counts as a large reply, so that
// no client is closed because of it, and the next script waits until it has left.
func TestResultsOfScriptsAreNotTheirReaders(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "100mb", "--maxmemory-clients", "4mb", "--write-timeout", "3600")
		witness := s.Dial()
		for name, script := range map[string]string{
			"long strings":  "local s, r = string.rep('x', 500000), {} for i = 1, 12 do r[i] = s .. i end return r",
			"short strings": "local s, r = string.rep('x', 500), {} for i = 1, 12000 do r[i] = s .. i end return r",
			"as it came":    "return redis.call('LRANGE', 'list', 0, -1)",
		} {
			for i := range 800 {
				witness.Do("RPUSH", "list", strings.Repeat("v", 10_000+i))
			}
			want := witness.Do("EVAL", script, "0")
			var mute []*inproc.Client
			for range 3 {
				c := s.Dial()
				c.Command("EVAL", script, "0")
				mute = append(mute, c)
			}
			w.Settle()
			require.True(t, s.Engine().Pressed(), "%s: others wait", name)
			require.Zero(t, witness.InfoNumber("evicted_clients"), name)
			reader := s.Dial()
			reader.Command("EVAL", script, "0")
			for _, c := range mute {
				require.NoError(t, c.Close())
			}
			require.Equal(t, want, reader.Reply(), name)
			witness.Do("DEL", "list")
		}
	})
}
