package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua/compiler"
)

func TestCompileRefusesWithTheErrorsOfRedis(t *testing.T) {
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
		_, err := compiler.Compile([]byte(source))
		require.Error(t, err, source)
		require.Contains(t, err.Error(), want)
	}
	script, err := compiler.Compile([]byte("#!lua flags=no-writes,allow-stale\nreturn redis.call('x')"))
	require.NoError(t, err)
	require.Equal(t, compiler.Flags{Declared: true, NoWrites: true, AllowStale: true}, script.Flags())
	require.Equal(t, compiler.SHA([]byte("#!lua flags=no-writes,allow-stale\nreturn redis.call('x')")), script.SHA())
}

func TestTextsProveWhatScriptsDo(t *testing.T) {
	for source, want := range map[string]string{
		"return redis.call('cl.throttle',KEYS[1],ARGV[1],ARGV[2],ARGV[3],ARGV[4])":                                                "known cl.throttle[1 0 0 0 0]",
		"return redis.call('GET', KEYS[1])":                                                                                       "known GET[1]",
		"local k = KEYS[2] local v = tonumber(ARGV[1]) if v > 1 then redis.call('incrby', k, v) end return redis.pcall('ttl', k)": "known incrby[2 0] ttl[2]",
		"return 1": "known",
		"local k = KEYS[1] k = 'other' return redis.call('get', k)":                       "known get[0]",
		"local k = KEYS[1] local k = 'other' return redis.call('get', k)":                 "known get[0]",
		"if ARGV[1] then local k = 'x' end local k = KEYS[1] return redis.call('get', k)": "known get[0]",
		"return redis.call('get', KEYS[ARGV[1]])":                                         "known get[-1]",
		"return redis.call('get', 'p:' .. KEYS[1])":                                       "known get[0]",
		"return redis.call(ARGV[1], KEYS[1])":                                             "bounded",
		"return redis.call('del', unpack(KEYS))":                                          "bounded",
		"local t = KEYS t[1] = 'x' return redis.call('get', KEYS[1])":                     "bounded",
		"KEYS[1] = 'x' return redis.call('get', KEYS[1])":                                 "bounded",
		"return redis.call('get', (redis.call('get', KEYS[1])))":                          "known get[0] get[1]",
		"return redis.call('get', redis.call('get', KEYS[1]))":                            "bounded",
		"local call = redis.call return call('get', KEYS[1])":                             "",
		"for i = 1, 2 do end": "known",
		"for i = 1, #KEYS do local k = KEYS[i] redis.call('del', k, KEYS[i + 1]) end": "known del[-1 -1]",
		"for i = #ARGV, 1, -1 do redis.call('del', KEYS[1]) end":                      "",
		"for _, k in ipairs(KEYS) do redis.call('del', k) break end":                  "known del[-1]",
		"for _, k in ipairs(KEYS) do k = 'x' redis.call('del', k) end":                "known del[0]",
		"for i, v in ipairs(ARGV) do redis.call('set', v, i) end":                     "known set[0 0]",
		"for i, v in ipairs(ARGV) do ARGV[i + 1] = 'x' end":                           "",
		"for i, v in ipairs(ARGV) do local t = ARGV t[i + 1] = 'x' end":               "",
		"local ipairs = pairs for _, k in ipairs(KEYS) do end":                        "",
		"for _, k in pairs(KEYS) do end":                                              "",
		"for i = 1, ARGV[1] do end":                                                   "",
		"for i = 1, 1e9 do end":                                                       "",
		"for i = 1, 10, 0 do end":                                                     "",
		"for i = 1, 10, 0.001 do end":                                                 "",
		"for i = 10, 1 do end":                                                        "known",
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
		script, err := compiler.Compile([]byte(source))
		require.NoError(t, err, source)
		got := ""
		calls, known := script.Calls()
		switch {
		case known:
			require.True(t, script.Bounded(0))
			got = "known"
			for _, c := range calls {
				got += fmt.Sprintf(" %s%v", c.Name, c.Keys)
			}
		case script.Bounded(0):
			got = "bounded"
		}
		require.Equal(t, want, got, source)
	}
}

// TestLongConstructorsNeedFewConstants: the interpreter's compiler searches all constants for each
// new one, so a constant for each key of a long table would take seconds.
func TestLongConstructorsNeedFewConstants(t *testing.T) {
	for _, source := range []string{
		"return {" + strings.Repeat("9,", 25500) + "x = 1}",
		"return {" + strings.Repeat("9,", 32000) + "}",
		"return {" + strings.Repeat("9,", 50) + strings.Repeat("[8] = 7, 6,", 2000) + "}",
	} {
		script, err := compiler.Compile([]byte(source))
		require.NoError(t, err)
		require.Less(t, len(script.Proto().Constants), 200)
	}
}
