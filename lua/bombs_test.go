package lua_test

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// bomb is a script that would exhaust an unguarded interpreter, or the whole process.
type bomb struct {
	name, source string
	// want is part of the reply.
	want string
	// endless scripts are killed after a moment, as by a time limit.
	endless bool
}

var bombs = []bomb{
	{name: "loop", source: "while true do end", endless: true},
	{name: "loop in pcall", source: "while true do pcall(function() while true do end end) end", endless: true},
	{name: "loop of pcalls of ours", source: "while true do pcall(pcall, pcall, error) end", endless: true},
	{name: "loop in xpcall's handler", source: "xpcall(function() error('x') end, function() while true do end end)", endless: true},
	{name: "loop in a coroutine", source: "coroutine.wrap(function() while true do end end)()", endless: true},
	{name: "loop in a coroutine in pcall", source: "while true do local c = coroutine.create(function() while true do end end) pcall(coroutine.resume, c) end", endless: true},
	{name: "loop in a comparison", source: "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() while true do end end)", endless: true},
	{name: "loop in a metamethod", source: "local t = setmetatable({}, {__index = function() while true do end end}) return t.x", endless: true},
	{name: "loop in gsub", source: "string.gsub('x', 'x', function() while true do end end)", endless: true},
	{name: "loop in loadstring", source: "loadstring('while true do end')()", endless: true},
	{name: "goto", source: "::a:: goto a", endless: true},
	{name: "tail recursion", source: "local function f() return f() end return f()", endless: true},
	{name: "tail recursion in pcall", source: "local function f() return f() end while true do pcall(f) end", endless: true},
	{name: "sorting long strings", source: "local s = ('x'):rep(8e6) local t = {} for i = 1, 60000 do t[i] = s .. (i % 2) end table.sort(t)", want: "memory"},
	{name: "sorting one long string", source: "local s = ('x'):rep(16e6) local r = s:sub(1) .. '' local t = {} for i = 1, 60000 do t[i] = i % 2 == 0 and s or r end table.sort(t)", endless: true},
	{name: "comparing long strings", source: "local a, b = ('x'):rep(16e6), ('x'):rep(15999999) .. 'y' while true do local _ = a < b end", endless: true},

	{name: "string.rep 1e9", source: "return #string.rep('x', 1e9)", want: "too long"},
	{name: "string.rep 1e12", source: "return #string.rep('x', 1e12)", want: "too long"},
	{name: "string.rep of nothing", source: "return #string.rep('', 1e18)", want: ":0"},
	{name: "string.rep in pcall", source: "while true do pcall(string.rep, 'x', 1e12) end", endless: true},
	{name: "doubling", source: "local s = 'x' for i = 1, 40 do s = s .. s end return #s", want: "too long"},
	{name: "tripling with format", source: "local s = 'x' for i = 1, 40 do s = string.format('%s%s%s', s, s, s) end return #s", want: "too long"},
	{name: "doubling with gsub", source: "local s = 'xx' for i = 1, 40 do s = s:gsub('.', '%0%0') end return #s", want: "too many steps"},
	{name: "doubling with concat", source: "local s = 'x' for i = 1, 40 do s = table.concat({s, s}) end return #s", want: "too long"},
	{name: "concat of many", source: "local s, t = ('x'):rep(1e6), {} for i = 1, 10000 do t[i] = s end return #table.concat(t)", want: "too long"},
	{name: "json of many", source: "local s, t = ('x'):rep(1e6), {} for i = 1, 10000 do t[i] = s end return #cjson.encode(t)", want: "too long"},
	{name: "struct of many", source: "return #struct.pack(('c0'):rep(100), unpack((function() local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e6) end return t end)()))", want: "memory"},
	{name: "strings kept", source: "local t = {} for i = 1, 10000 do t[i] = ('x'):rep(1e6) .. i end", want: "memory"},
	{name: "strings kept by pcall", source: "local t = {} for i = 1, 1e9 do pcall(function() t[#t + 1] = ('x'):rep(1e6) .. i end) end", want: "memory"},
	{name: "entries", source: "local t = {} for i = 1, 1e8 do t[i] = i end", want: "memory"},
	{name: "keys", source: "local t = {} for i = 1, 1e8 do t['k' .. i] = i end", want: "memory"},
	{name: "tables", source: "local t = {} for i = 1, 1e8 do t = {t} end", want: "memory"},
	{name: "closures", source: "local t = {} for i = 1, 1e8 do t[i] = function() return i end end", want: "memory"},
	{name: "sparse", source: "local t = {} t[60000000] = 1 return 1", want: ":1"},
	{name: "many sparse", source: "local t = {} for i = 1, 1e6 do t[i] = {[1] = 1, [65535] = 1} t[i][65535] = 2 end", want: "memory"},
	{name: "json of a cycle", source: "local t = {} t[1] = t cjson.encode_max_depth(2147483647) return cjson.encode(t)", want: "excessive nesting"},
	{name: "json of a bush", source: "local t = {} for i = 1, 100 do t = {t, t} end return cjson.encode(t)", want: "too long"},
	{name: "json of depth", source: "cjson.decode_max_depth(2147483647) return cjson.decode(('['):rep(1e7))", want: "nested"},
	{name: "json of empties", source: "local t = {} for i = 1, 1e9 do t[i] = cjson.decode('[' .. ('[],'):rep(5e6) .. '1]') end", want: "memory"},
	{name: "reply of a cycle", source: "local t = {} t[1] = t return t", want: "reached lua stack limit"},
	{name: "reply of a bush", source: "local t = {} for i = 1, 100 do t = {t, t} end return t", want: "too large"},
	{name: "reply of long strings", source: "local s = ('x'):rep(1e6) local t = {} for i = 1, 5000 do t[i] = s end return t", want: "too large"},

	{name: "recursion", source: "local function f() return 1 + f() end return f()", want: "stack overflow"},
	{name: "recursion through pcall", source: "local function f() return pcall(f), 1 end return f()", want: ":1"},
	{name: "recursion through a metamethod", source: "local t = setmetatable({}, {__index = function(t, k) return t[k .. 1] end}) return t.x", want: "stack overflow"},
	{name: "recursion through gsub", source: "local function f(s) return (s:gsub('.', f)) end return f('x')", want: "stack overflow"},
	{name: "recursion through sort", source: "local function f() table.sort({1, 2, 3}, f) return true end f()", want: "stack overflow"},
	{name: "recursion through tostring", source: "local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) return tostring(t)", want: "stack overflow"},
	{name: "recursion through __index chain", source: "local t = {} setmetatable(t, {__index = t}) return t.x", want: "-"},
	{name: "unpack", source: "local t = {} for i = 1, 60000 do t[i] = i end return select('#', unpack(t))", want: "too many results"},
	{name: "unpack of a range", source: "return {unpack({}, 1, 1e9)}", want: "too many results"},
	{name: "unpack in xpcall", source: "local t = {} for i = 1, 7000 do t[i] = i end local function f(...) return f(1, ...) end return xpcall(function() return f(unpack(t)) end, function(e) return e end)", endless: true},
	{name: "arguments that grow", source: "local function f(...) return f(1, 2, 3, ...) end return f()", want: "stack overflow"},

	{name: "coroutines", source: "for i = 1, 100000 do coroutine.create(function() end) end", want: "too many coroutines"},
	{name: "coroutines nested", source: "local function f() return coroutine.wrap(f)() end return f()", want: "too many coroutines"},
	{name: "coroutines kept by pcall", source: "local t = {} while true do pcall(function() t[#t + 1] = coroutine.create(function() end) end) end", endless: true},
	{name: "collections", source: "for i = 1, 1e6 do collectgarbage() end return 1", want: ":1"},

	{name: "pattern of five lazies", source: "return string.find(('a'):rep(3000), '.-.-.-.-.-b')", want: "too many steps"},
	{name: "pattern on a long string", source: "return string.find(('a'):rep(5e6), '(.-)b')", want: "too many steps"},
	{name: "pattern of many stars", source: "return string.find(('b'):rep(1e6), ('a*'):rep(4000) .. 'c')", want: "too many steps"},
	{name: "pattern of back references", source: "return string.find(('a'):rep(1e6), '(.*)%1%1%1b')", want: "too many steps"},
	{name: "pattern of a long set", source: "return string.find(('b'):rep(1e6), '[' .. ('a'):rep(1e6) .. ']c')", want: "too many steps"},
	{name: "pattern of depth", source: "return string.find(('a'):rep(1e6), ('a?'):rep(1e6))", want: "pattern too complex"},
	{name: "pattern in pcall", source: "while true do pcall(string.find, ('a'):rep(3000), '.-.-.-.-.-b') end", endless: true},
	{name: "frontiers", source: "return #string.gsub(('a'):rep(1e6), '%f[b]', 'x')", want: ":1000000"},

	{name: "source of brackets", source: "return " + strings.Repeat("(", 60000), want: "too many syntax levels"},
	{name: "source of braces", source: "return " + strings.Repeat("{", 60000), want: "too many syntax levels"},
	{name: "source of not", source: "return " + strings.Repeat("not ", 15000), want: "too many syntax levels"},
	{name: "source of minus", source: "return " + strings.Repeat("- ", 30000) + "1", want: "too many syntax levels"},
	{name: "source of concatenation", source: "return 1" + strings.Repeat(" .. 1", 12000), want: "too many syntax levels"},
	{name: "source of plus", source: "return 1" + strings.Repeat("+x", 30000), want: "too many syntax levels"},
	{name: "source of calls", source: "return f" + strings.Repeat("()", 30000), want: "too many syntax levels"},
	{name: "source of functions", source: strings.Repeat("return function() ", 3000), want: "too many syntax levels"},
	{name: "source of elseif", source: "if a then " + strings.Repeat("elseif a then ", 4500) + "end", want: "-"},
	{name: "source of constants", source: "local t = {" + strings.Repeat("'a',", 16000) + "} return #t", want: ":16000"},
	{name: "source too long", source: strings.Repeat(" ", lua.MaxSource+1), want: "too long"},
	{name: "loadstring of brackets", source: "return select(2, loadstring(('('):rep(60000)))", want: "too many syntax levels"},
	{name: "loadstring too long", source: "return select(2, loadstring(('('):rep(5e6)))", want: "too long"},
	{name: "loadstring again and again", source: "while true do loadstring('return ' .. ('1+'):rep(1900) .. '1') end", endless: true},
	{name: "load without end", source: "return select(2, load(function() return ' x' end))", want: "too long"},
	{name: "bytecode", source: "\x1bLua", want: "precompiled"},
	{name: "loadstring of bytecode", source: "return select(2, loadstring('\\27Lua'))", want: "precompiled"},
}

// TestBombsAreContained runs every bomb to its end: killed ones end within a moment of the kill,
// the others when they exceed their budgets.
func TestBombsAreContained(t *testing.T) {
	limits := lua.DefaultLimits()
	limits.Memory = 64 << 20
	pool := lua.NewPool(limits)
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			if !b.endless { // the others are killed from another goroutine
				effort.Alone(t)
			}
			reply, grown := explode(t, pool, b)
			require.Less(t, grown, uint64(200<<20))
			if b.endless {
				require.Contains(t, reply, "killed by the test script: ")
				return
			}
			require.Contains(t, reply, b.want)
		})
	}
	runtime.GC()
	require.Equal(t, ":1\r\n", runIn(pool, "return 1"))
}

// explode returns the reply, and how much memory the process took from the system meanwhile. It
// does not return if a script escapes the guard.
func explode(t *testing.T, pool *lua.Pool, b bomb) (string, uint64) {
	t.Helper()
	debug.FreeOSMemory() // memory of earlier bombs does not count
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	script, err := lua.Compile([]byte(b.source))
	if err != nil {
		return "-" + err.Error(), 0
	}
	r := pool.Get()
	if b.endless {
		timer := time.AfterFunc(100*time.Millisecond, func() { r.Kill("killed by the test") })
		defer timer.Stop()
	}
	var w resp.Writer
	r.Execute(script, nil, nil, &echo{}, &w)
	runtime.ReadMemStats(&after)
	pool.Put(r)
	if after.HeapSys < before.HeapSys {
		return string(w.Buf), 0
	}
	return string(w.Buf), after.HeapSys - before.HeapSys
}

// TestLongCallsOfLibrariesPauseInTheirMidst: a library function that takes long counts as many
// instructions while it runs. So its script is moved away from an event loop like one with a loop,
// and can be killed there.
func TestLongCallsOfLibrariesPauseInTheirMidst(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	for _, source := range []string{
		"return string.find(ARGV[1], '.-.-.-.-.-b')",
		"return string.match(ARGV[1], '.-.-.-.-.-b')",
		"return string.gsub(ARGV[1], '.-.-.-.-.-b', '')",
		"return string.gsub(ARGV[1], '%f[b]', 'x')",
		"for _ in string.gmatch(ARGV[1], '.-.-.-.-.-b') do end",
		"return string.find(ARGV[1], 'b+c')",
	} {
		script, err := lua.Compile([]byte(source))
		require.NoError(t, err)
		r := pool.Get()
		paused := 0
		r.PauseAfter(20_000, func() {
			paused++
			r.Kill("killed in its midst")
		})
		var w resp.Writer
		r.Execute(script, nil, [][]byte{[]byte(strings.Repeat("a", 100_000))}, &echo{}, &w)
		require.Equal(t, 1, paused, source)
		require.Contains(t, string(w.Buf), "killed in its midst", source)
		require.Less(t, r.Spent(), 200_000, source)
		pool.Put(r)
	}
}
