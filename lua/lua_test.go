package lua_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// scripted answers with a given reply and keeps what it was asked.
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

func TestKeysAndArguments(t *testing.T) {
	host := &scripted{reply: "+OK\r\n"}
	reply := execute(t, "return {redis.call('SET', KEYS[1], ARGV[1], 3), #KEYS, #ARGV, KEYS[3]}", host, 2,
		[]string{"k\x00\xff", "l"}, []string{"v"})
	require.Equal(t, "*3\r\n+OK\r\n:2\r\n:1\r\n", reply)
	require.Equal(t, []string{"SET k\x00\xff v 3"}, host.asked)
	require.Equal(t, []int{2}, host.protos)
}

// TestRepliesBothWays sends replies of commands through a script to both kinds of
// clients.
func TestRepliesBothWays(t *testing.T) {
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

func TestWhatALibraryTellsTheHost(t *testing.T) {
	host := &scripted{reply: "+OK\r\n"}
	require.Equal(t, "$-1\r\n", execute(t, "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b')", host, 2, nil, nil))
	require.Equal(t, []string{"3 a 1 b"}, host.logged)
	require.Equal(t, "*2\r\n:1\r\n$-1\r\n",
		execute(t, "return {redis.acl_check_cmd('get', 'a'), redis.acl_check_cmd('secret')}", host, 2, nil, nil))
	require.Contains(t, execute(t, "redis.acl_check_cmd('unknown')", host, 2, nil, nil), "Invalid command passed to redis.acl_check_cmd()")
	execute(t, "redis.setresp(3) redis.call('a') redis.setresp(2) redis.call('b')", host, 2, nil, nil)
	require.Equal(t, []int{3, 2}, host.protos)
}

// TestNothingStays runs pairs of scripts in one state: the second must not see the
// first.
func TestNothingStays(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	for _, c := range [][2]string{
		{"KEYS[1] = 'x' KEYS.y = 1 ARGV.z = 2", "return {#KEYS, tostring(KEYS.y), tostring(ARGV.z)}"},
		{"setmetatable(KEYS, {__index = function() return 9 end})", "return tostring(KEYS[1])"},
		{"math.randomseed(99) math.random()", "return tostring(math.random(1000))"},
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

func TestKillIsSticky(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	script, err := lua.Compile([]byte("while true do pcall(function() while true do end end) end"))
	require.NoError(t, err)
	r := pool.Get()
	var w resp.Writer
	var wait sync.WaitGroup
	wait.Go(func() {
		time.Sleep(10 * time.Millisecond) // Any instant will do, before or amid the loop.
		r.Kill("Script killed by user with SCRIPT KILL.")
		r.Kill("a second reason")
	})
	r.Execute(script, nil, nil, &echo{}, &w)
	wait.Wait()
	require.Equal(t, "-ERR Script killed by user with SCRIPT KILL. script: "+script.SHA()+", on @user_script:1.\r\n", string(w.Buf))
	pool.Put(r)
	require.NotSame(t, r, pool.Get())

	// Before it begins, too.
	r = pool.Get()
	r.Kill("over")
	w.Buf = nil
	r.Execute(script, nil, nil, &echo{}, &w)
	require.Contains(t, string(w.Buf), "-ERR over script: ")
}

func TestCompileRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"x x":                       "ERR Error compiling script (new function): user_script:1: ",
		"\n\nfor":                   "ERR Error compiling script (new function): user_script:3: ",
		"return 'a":                 "ERR Error compiling script (new function): user_script:1: ",
		"return 3x":                 "ERR Error compiling script (new function): user_script:1: ",
		"#!lua":                     "ERR Invalid script shebang",
		"#!python\n":                "ERR Unexpected engine in script shebang: #!python",
		"#!lua x=1\n":               "ERR Unknown lua shebang option: x=1",
		"#!lua flags=a\n":           "ERR Unexpected flag in script shebang: a",
		"\x1bLuaQ":                  "ERR Error compiling script (new function): user_script: precompiled",
		"break":                     "ERR Error compiling script (new function): user_script:",
		"return function() return ": "ERR Error compiling script (new function): user_script:1: ",
	} {
		_, err := lua.Compile([]byte(source))
		require.Error(t, err, source)
		require.Contains(t, err.Error(), want)
	}
	script, err := lua.Compile([]byte("#!lua flags=no-writes,allow-stale\nreturn redis.call('x')"))
	require.NoError(t, err)
	require.Equal(t, lua.Flags{Declared: true, NoWrites: true, AllowStale: true}, script.Flags())
	require.Equal(t, lua.SHA([]byte("#!lua flags=no-writes,allow-stale\nreturn redis.call('x')")), script.SHA())
}

func TestFacts(t *testing.T) {
	for source, want := range map[string]string{
		passThrough:                         "confined cl.throttle[1 0 0 0 0]",
		"return redis.call('GET', KEYS[1])": "confined GET[1]",
		"local k = KEYS[2] local v = tonumber(ARGV[1]) if v > 1 then redis.call('incrby', k, v) end return redis.pcall('ttl', k)": "confined incrby[2 0] ttl[2]",
		"return 1": "confined",
		"local k = KEYS[1] k = 'other' return redis.call('get', k)":                       "confined get[0]",
		"local k = KEYS[1] local k = 'other' return redis.call('get', k)":                 "confined get[0]",
		"if ARGV[1] then local k = 'x' end local k = KEYS[1] return redis.call('get', k)": "confined get[0]",
		"return redis.call('get', KEYS[ARGV[1]])":                                         "confined get[-1]",
		"return redis.call('get', 'p:' .. KEYS[1])":                                       "confined get[0]",
		"return redis.call(ARGV[1], KEYS[1])":                                             "straight",
		"return redis.call('del', unpack(KEYS))":                                          "straight",
		"local t = KEYS t[1] = 'x' return redis.call('get', KEYS[1])":                     "straight",
		"KEYS[1] = 'x' return redis.call('get', KEYS[1])":                                 "straight",
		"return redis.call('get', (redis.call('get', KEYS[1])))":                          "confined get[0] get[1]",
		"return redis.call('get', redis.call('get', KEYS[1]))":                            "straight",
		"local call = redis.call return call('get', KEYS[1])":                             "",
		"for i = 1, 2 do end": "confined",
		"for i = 1, #KEYS do local k = KEYS[i] redis.call('del', k, KEYS[i + 1]) end": "confined del[-1 -1]",
		"for i = #ARGV, 1, -1 do redis.call('del', KEYS[1]) end":                      "",
		"for _, k in ipairs(KEYS) do redis.call('del', k) break end":                  "confined del[-1]",
		"for _, k in ipairs(KEYS) do k = 'x' redis.call('del', k) end":                "confined del[0]",
		"for i, v in ipairs(ARGV) do redis.call('set', v, i) end":                     "confined set[0 0]",
		"for i, v in ipairs(ARGV) do ARGV[i + 1] = 'x' end":                           "",
		"for i, v in ipairs(ARGV) do local t = ARGV t[i + 1] = 'x' end":               "",
		"local ipairs = pairs for _, k in ipairs(KEYS) do end":                        "",
		"for _, k in pairs(KEYS) do end":                                              "",
		"for i = 1, ARGV[1] do end":                                                   "",
		"for i = 1, 1e9 do end":                                                       "",
		"for i = 1, 10, 0 do end":                                                     "",
		"for i = 1, 10, 0.001 do end":                                                 "",
		"for i = 10, 1 do end":                                                        "confined",
		"for i = 9007199254740992, 9007199254740994 do end":                           "",
		"for i = 1, 64 do for j = 1, 64 do end end":                                   "",
		"for i = 1, #KEYS do for j = 1, #ARGV do redis.call('del', KEYS[1]) end end":  "",
		"local s = 'x' for i = 1, 25 do s = s .. s end":                               "",
		"while true do end":                                                           "",
		"repeat until true":                                                           "",
		"::a:: goto a":                                                                "",
		"local f = function() end":                                                    "",
		"local function f() end":                                                      "",
		"return string.rep('x', 10)":                                                  "",
		"return ('x'):rep(10)":                                                        "",
		"return table.concat(KEYS)":                                                   "",
		"return cjson.encode(KEYS)":                                                   "",
		"return loadstring('x')":                                                      "",
		"return pcall(error)":                                                         "",
		"return ({redis.call})[1]('get', 'x')":                                        "",
		"local redis = {call = tostring} return redis.call('get', KEYS[1])":           "",
		"local tonumber = redis.call return tonumber('get', 'other')":                 "",
		"return _G.redis.call('get', 'x')":                                            "",
		"local r = redis return r.call('get', 'x')":                                   "",
		"return ...": "",
		"return 1" + strings.Repeat(" .. 'x'", 60):        "",
		strings.Repeat("do local a = ARGV[1] end ", 2000): "",
	} {
		script, err := lua.Compile([]byte(source))
		require.NoError(t, err, source)
		got := ""
		switch {
		case script.Confined():
			require.True(t, script.Straight(0))
			got = "confined"
			for _, c := range script.Calls() {
				got += fmt.Sprintf(" %s%v", c.Name, c.Keys)
			}
		case script.Straight(0):
			got = "straight"
		}
		require.Equal(t, want, got, source)
	}
}

// TestConstantConditions: the interpreter alone aims some of these jumps wrongly.
func TestConstantConditions(t *testing.T) {
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
