package lua_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// scripted replies with a given reply and records the calls.
type scripted struct {
	reply  string
	asked  []string
	protos []int
	logged []string
}

func (h *scripted) Call(args [][]byte, proto int) ([]byte, []shared.Ref) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	h.asked = append(h.asked, strings.Join(words, " "))
	h.protos = append(h.protos, proto)
	return []byte(h.reply), nil
}

func (h *scripted) Log(level int, msg []byte) {
	h.logged = append(h.logged, fmt.Sprintf("%d %s", level, msg))
}

func (h *scripted) Allowed(args [][]byte) (bool, bool) {
	return string(args[0]) != "unknown", string(args[0]) != "secret"
}

func execute(t *testing.T, source string, host lua.Host, proto int, keys, args []string) string {
	t.Helper()
	script, err := lua.Compile([]byte(source))
	require.NoError(t, err)
	pool := lua.NewPool(lua.DefaultLimits())
	r := pool.Get()
	defer pool.Put(r)
	w := resp.Writer{Proto: proto, Buf: []byte("before ")}
	r.Execute(script, raw(keys), raw(args), host, &w)
	require.Equal(t, "before ", string(w.Buf[:7]))
	return string(w.Buf[7:])
}

func raw(words []string) [][]byte {
	var list [][]byte
	for _, w := range words {
		list = append(list, []byte(w))
	}
	return list
}

func TestScriptsGetTheirKeysAndArguments(t *testing.T) {
	host := &scripted{reply: "+OK\r\n"}
	reply := execute(t, "return {redis.call('SET', KEYS[1], ARGV[1], 3), #KEYS, #ARGV, KEYS[3]}", host, 2,
		[]string{"k\x00\xff", "l"}, []string{"v"})
	require.Equal(t, "*3\r\n+OK\r\n:2\r\n:1\r\n", reply)
	require.Equal(t, []string{"SET k\x00\xff v 3"}, host.asked)
	require.Equal(t, []int{2}, host.protos)
}

// TestRepliesPassThroughScripts passes replies of commands through a script to clients of both
// protocols.
func TestRepliesPassThroughScripts(t *testing.T) {
	for _, c := range []struct{ setresp, reply, two, three string }{
		{"", ":5\r\n", ":5\r\n", ":5\r\n"},
		{"", ":-9007199254740993\r\n", ":-9007199254740992\r\n", ":-9007199254740992\r\n"},
		{"", "$-1\r\n", "$-1\r\n", "_\r\n"},
		{"", "*-1\r\n", "$-1\r\n", "_\r\n"},
		{"", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n"},
		{"", "$0\r\n\r\n", "$0\r\n\r\n", "$0\r\n\r\n"},
		{"", "*0\r\n", "*0\r\n", "*0\r\n"},
		{"", "*3\r\n:1\r\n$-1\r\n*1\r\n+x\r\n", "*3\r\n:1\r\n$-1\r\n*1\r\n+x\r\n", "*3\r\n:1\r\n_\r\n*1\r\n+x\r\n"},
		{"", "*2\r\n-ERR a\r\n:1\r\n", "*2\r\n-ERR a\r\n:1\r\n", "*2\r\n-ERR a\r\n:1\r\n"},
		{"3", "_\r\n", "$-1\r\n", "_\r\n"},
		{"3", "#t\r\n", ":1\r\n", "#t\r\n"},
		{"3", "#f\r\n", ":0\r\n", "#f\r\n"},
		{"3", ",3.25\r\n", "$4\r\n3.25\r\n", ",3.25\r\n"},
		{"3", ",inf\r\n", "$3\r\ninf\r\n", ",inf\r\n"},
		{"3", "(123456789012345678901\r\n", "$21\r\n123456789012345678901\r\n", "(123456789012345678901\r\n"},
		{"3", "=6\r\ntxt:hi\r\n", "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"},
		{"3", "%1\r\n+a\r\n:1\r\n", "*2\r\n+a\r\n:1\r\n", "%1\r\n+a\r\n:1\r\n"},
		{"3", "%1\r\n$1\r\na\r\n:1\r\n", "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"},
		{"3", "~1\r\n$1\r\na\r\n", "*1\r\n$1\r\na\r\n", "~1\r\n$1\r\na\r\n"},
		{"3", "*2\r\n:1\r\n_\r\n", "*1\r\n:1\r\n", "*1\r\n:1\r\n"},
	} {
		source := "local r = redis.call('x') return r"
		direct := "return redis.call('x')"
		if c.setresp != "" {
			source = "redis.setresp(3) " + source
			direct = "redis.setresp(3) " + direct
		}
		for _, s := range []string{source, direct} {
			require.Equal(t, c.two, execute(t, s, &scripted{reply: c.reply}, 2, nil, nil), "%s %q", s, c.reply)
			require.Equal(t, c.three, execute(t, s, &scripted{reply: c.reply}, 3, nil, nil), "%s %q", s, c.reply)
		}
	}
}

func TestHostIsToldWhatTheLibraryIsAsked(t *testing.T) {
	host := &scripted{reply: "+OK\r\n"}
	require.Equal(t, "$-1\r\n", execute(t, "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b')", host, 2, nil, nil))
	require.Equal(t, []string{"3 a 1 b"}, host.logged)
	require.Equal(t, "*2\r\n:1\r\n$-1\r\n",
		execute(t, "return {redis.acl_check_cmd('get', 'a'), redis.acl_check_cmd('secret')}", host, 2, nil, nil))
	require.Contains(t, execute(t, "redis.acl_check_cmd('unknown')", host, 2, nil, nil), "Invalid command passed to redis.acl_check_cmd()")
	execute(t, "redis.setresp(3) redis.call('a') redis.setresp(2) redis.call('b')", host, 2, nil, nil)
	require.Equal(t, []int{3, 2}, host.protos)
}

// TestAScriptLeavesNothingToTheNext runs pairs of scripts in one state. The second must not see
// effects of the first.
func TestAScriptLeavesNothingToTheNext(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	for _, c := range [][2]string{
		{"KEYS[1] = 'x' KEYS.y = 1 ARGV.z = 2", "return {#KEYS, tostring(KEYS.y), tostring(ARGV.z)}"},
		{"setmetatable(KEYS, {__index = function() return 9 end})", "return tostring(KEYS[1])"},
		{"cjson.encode_max_depth(1) cjson.encode_sparse_array(true) cjson.encode_invalid_numbers('null')", "return {cjson.encode_max_depth(), tostring(cjson.encode_sparse_array()), tostring(cjson.encode_invalid_numbers())}"},
		{"redis.setresp(3)", "return false"},
		{"pcall(function() x = 1 end)", "return tostring(rawget(_G, 'x'))"},
		{"pcall(rawset, _G, 'x', 1) pcall(rawset, string, 'x', 1) pcall(table.insert, string, 1) pcall(table.sort, redis)", "return tostring(rawget(_G, 'x')) .. tostring(rawget(string, 'x')) .. tostring(string[1])"},
		{"pcall(setmetatable, string, {}) pcall(setmetatable, _G, nil) local m = getmetatable('') pcall(function() m.__index = nil end) pcall(rawset, m, '__add', 1)", "return ('x'):upper() .. ('1' + 1)"},
		{"for k, v in pairs(_G) do if type(v) == 'table' then pcall(function() v.zz = 1 end) end end", "return tostring(redis.zz) .. tostring(cjson.zz) .. tostring(bit.zz)"},
	} {
		want := runIn(lua.NewPool(lua.DefaultLimits()), c[1])
		require.NotContains(t, want, "-ERR", c[1])
		require.NotContains(t, runIn(pool, c[0]), "-ERR", c[0])
		require.Equal(t, want, runIn(pool, c[1]), c[0])
	}
}

// TestEachRunHasOtherRandomNumbers: sliding logs in scripts distinguish calls at the same instant
// by math.random. A seed makes the numbers of its run those of Redis, and affects no other run.
func TestEachRunHasOtherRandomNumbers(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	const script = "return tostring(math.random())"
	seen := map[string]bool{}
	for range 100 {
		seen[runIn(pool, script)] = true
		require.Equal(t, "$16\r\n0.26644419658298\r\n", runIn(pool, "math.randomseed(7) "+script))
	}
	require.Len(t, seen, 100)
}

func TestAKilledScriptCannotGoOn(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	script, err := lua.Compile([]byte("while true do pcall(function() while true do end end) end"))
	require.NoError(t, err)
	r := pool.Get()
	var w resp.Writer
	var wait sync.WaitGroup
	wait.Go(func() {
		runtime.Gosched() // any instant will do, before or during the loop
		r.Kill("Script killed by user with SCRIPT KILL.")
		r.Kill("a second reason")
	})
	r.Execute(script, nil, nil, &echo{}, &w)
	wait.Wait()
	require.Equal(t, "-ERR Script killed by user with SCRIPT KILL. script: "+script.SHA()+", on @user_script:1.\r\n", string(w.Buf))
	pool.Put(r)
	require.NotSame(t, r, pool.Get())

	// A kill before the script begins works, too.
	r = pool.Get()
	r.Kill("over")
	w.Buf = nil
	r.Execute(script, nil, nil, &echo{}, &w)
	require.Contains(t, string(w.Buf), "-ERR over script: ")
}

// TestConstantConditionsAreDecidedAsAnyOther: the interpreter's compiler computes some of these
// jumps wrongly.
func TestConstantConditionsAreDecidedAsAnyOther(t *testing.T) {
	for _, loop := range []string{"for a in ipairs({1, 2})", "for a = 1, 2", "for a in pairs({1, 2})", "local a = 0 while a < 2"} {
		for condition, taken := range map[string]bool{
			"nil": false, "false": false, "true": true, "1": true, "'x'": true, "not nil": true, "not 1": false,
			"nil and a": false, "a and nil": false, "nil or a": true, "(nil)": false, "1 == 2": false,
		} {
			last := ""
			if strings.Contains(loop, "while") {
				last = " a = a + 1"
			}
			for _, body := range []string{"local x = 1", "n = n + 1", "local x = a n = n + x - a + 1", ""} {
				want := 0
				if taken && strings.Contains(body, "n + ") {
					want = 2
				}
				source := "local n = 0 " + loop + " do if " + condition + " then " + body + " end" + last + " end return n"
				require.Equal(t, fmt.Sprintf(":%d\r\n", want), execute(t, source, nil, 2, nil, nil), source)
				source = "local n = 0 " + loop + " do if " + condition + " then else " + body + " end" + last + " end return n"
				want = 0
				if !taken && strings.Contains(body, "n + ") {
					want = 2
				}
				require.Equal(t, fmt.Sprintf(":%d\r\n", want), execute(t, source, nil, 2, nil, nil), source)
			}
		}
	}
}
