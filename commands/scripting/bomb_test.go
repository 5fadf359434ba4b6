package scripting_test

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// bomb is a script, and whether it never ends by itself.
type bomb struct {
	script  string
	endless bool
}

// bombs are scripts that would bring down a server without bounds. The test kills those that
// never end. Each of them fails or is harmless.
var bombs = map[string]bomb{
	"a loop":                         {"while true do end", true},
	"a loop in pcall":                {"while true do pcall(function() while true do end end) end", true},
	"a loop in a coroutine":          {"coroutine.wrap(function() while true do end end)()", true},
	"a long string":                  {"return #string.rep('x', 1e9)", false},
	"a longer string":                {"return #string.rep('x', 1e12)", false},
	"a string doubled":               {"local s = 'x' for i = 1, 40 do s = s .. s end return #s", false},
	"strings kept":                   {"local t = {} for i = 1, 10000 do t[i] = string.rep('x', 1e6) .. i end return #t", false},
	"recursion":                      {"local function f() return 1 + f() end return f()", false},
	"recursion by a metamethod":      {"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.x", false},
	"recursion in sort":              {"local function f() table.sort({1, 2, 3}, function() f() return true end) end f()", false},
	"tail recursion":                 {"local function f() return f() end return f()", true},
	"a pattern":                      {"return string.find(string.rep('a', 3000), '.-.-.-.-.-b')", false},
	"a pattern on a long string":     {"return string.find(string.rep('a', 5e6), '(.-)b')", false},
	"a wide array":                   {"local t = {} t[60000000] = 1 return 1", false},
	"many entries":                   {"local t = {} for i = 1, 1e9 do t[i] = i end return 1", false},
	"many coroutines":                {"local t = {} for i = 1, 100000 do t[i] = coroutine.create(function() end) end return 1", false},
	"nested coroutines":              {"local function f() coroutine.wrap(f)() end f()", false},
	"collections":                    {"for i = 1, 1000 do collectgarbage() end return 1", false},
	"unpack":                         {"local t = {} for i = 1, 1e6 do t[i] = i end return #{unpack(t)}", false},
	"brackets in loadstring":         {"return loadstring('return ' .. string.rep('(', 6e4))", false},
	"a reply that contains itself":   {"local t = {} t[1] = t return t", false},
	"a reply that grows by sharing":  {"local t = {string.rep('x', 1000)} for i = 1, 12 do t = {t, t, t, t, t, t, t, t} end return t", false},
	"a reply of many commands":       {"local s = string.rep('x', 1e6) local t = {} for i = 1, 200 do t[i] = s end return t", false},
	"errors caught":                  {"while true do pcall(error, 'x') end", true},
	"a long log":                     {"local s = string.rep('x', 1e6) for i = 1, 100 do redis.log(redis.LOG_WARNING, s) end return 1", false},
	"commands for ever":              {"while true do redis.pcall('ping') end", true},
	"commands that fail for ever":    {"while true do redis.pcall('nosuch') end", true},
	"a command with many words":      {"local t = {} for i = 1, 7000 do t[i] = 'k' .. i end return redis.call('exists', unpack(t))", false},
	"a loop in a sort":               {"local t = {} for i = 1, 5000 do t[i] = i end table.sort(t, function() while true do end end)", true},
	"a loop in gsub":                 {"return string.gsub('x', 'x', function() while true do end end)", true},
	"a json that is deep":            {"local s = string.rep('[', 1e5) return cjson.decode(s)", false},
	"a message that is deep":         {"return cmsgpack.unpack(string.rep('\\145', 1e5))", false},
	"a number of many digits":        {"return string.format('%99999999d', 1)", false},
	"a loop that no kill can escape": {"while true do local ok, e = pcall(function() while true do end end) end", true},
}

// longBomb runs for seconds until it has used all memory that it may.
const longBomb = "local t = {} for i = 1, 1e9 do t[#t + 1] = 'x' end return table.concat(t)"

// TestScriptBombs: no script harms another client. Memory stays within the bound for scripts,
// other clients are answered, and the server continues.
func TestScriptBombs(t *testing.T) {
	effort.Alone(t)
	s := inproc.Step(t)
	admin := s.Dial()
	require.Equal(t, inproc.OK, admin.Do("SET", "k", "v"))
	all := maps.Clone(bombs)
	if effort.Long() {
		all["a string made piece by piece"] = bomb{longBomb, false}
	}
	for name, bomb := range all {
		c := s.Dial()
		runtime.GC() // of what the previous script has left
		peak, stop := watchHeap()
		c.Command("EVAL", bomb.script, "0")
		if bomb.endless {
			s.Clock.AwaitTimers(1)
			s.Clock.Advance(5 * time.Second)
			require.Equal(t, busyReply, admin.Do("PING"), name)
			require.Equal(t, inproc.OK, admin.Do("SCRIPT", "KILL"), name)
		}
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		reply, err := c.R.ReadString('\n') // only the first line of a long reply, since the test shares the heap of the server
		require.NoError(t, err, name)
		if bomb.endless {
			require.True(t, strings.HasPrefix(reply, killedReply), "%s: %.200q", name, reply)
		}
		require.Equal(t, inproc.Bulk("v"), admin.Do("GET", "k"), name)
		stop()
		require.Less(t, peak.Load(), uint64(1<<30), name)
		require.NoError(t, c.Close())
	}
	require.Equal(t, "0", admin.Info("internal_errors"))
}

// watchHeap records the peak of the heap until stop is called.
func watchHeap() (peak *atomic.Uint64, stop func()) {
	peak = new(atomic.Uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			metrics.Read(sample)
			peak.Store(max(peak.Load(), sample[0].Value.Uint64()))
		}
	}()
	return peak, func() {
		close(done)
		<-ended
	}
}

// TestCommandsOfScriptsAreNoLongerThanAClientsMayBe: a script can repeat one long string many
// times in a command. The command is bounded like that of a client, because its memory would be
// needed before maxmemory is checked.
func TestCommandsOfScriptsAreNoLongerThanAClientsMayBe(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "64mb")
		c := s.Dial()
		many := "local s, t = ('x'):rep(1e6), {%s} for i = 1, 10 do t[#t + 1] = 'k' .. i t[#t + 1] = s end return redis.call(unpack(t))"
		for _, first := range []string{"'mset'", "'rpush', 'list'", "'hset', 'hash'", "'sadd', 'set'", "'exists'"} {
			reply := c.Do("EVAL", fmt.Sprintf(many, first), "0")
			require.Contains(t, reply, "-ERR the command is longer than maxmemory-clients admits, 3355440 script: ", first)
		}
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "proto-max-bulk-len", "100kb"))
		reply := c.Do("EVAL", "return redis.pcall('set', KEYS[1], ('x'):rep(102401))", "1", "k")
		require.Equal(t, "-ERR an argument of 102401 bytes is longer than proto-max-bulk-len, 102400\r\n", reply)
		require.Equal(t, inproc.OK, c.Do("EVAL", "return redis.call('set', KEYS[1], ('x'):rep(102400))", "1", "k"))
		require.Equal(t, ":1\r\n", c.Do("DBSIZE"))
	})
}
