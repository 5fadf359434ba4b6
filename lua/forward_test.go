package lua_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// FuzzForward passes replies through scripts that return them directly, and through one that
// assigns them to a variable first. Both give the same result.
func FuzzForward(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		f.Add(reply(random, 0), random.IntN(2) == 0)
	}
	for _, s := range []string{"+a b\r\n", "+a\x01\r\n", "+a\nb\r\n", "+\r\n", "+a\r\nb", "*2\r\n+a\r\n+b\r\n", ":07\r\n", ":-0\r\n", ":9007199254740993\r\n", "*1\r\n:1\r\n:2\r\n", "$3\r\nab\r\n", "*2\r\n:1\r\n", ":\r\n", "*-2\r\n", "-E x\r\n"} {
		f.Add(s, true)
	}
	var scripts [4]*lua.Script
	for i, source := range []string{"local r = redis.call('x') return r", "return redis.call('x')", "local r = redis.pcall('x') return r", "return redis.pcall('x')"} {
		script, err := lua.Compile([]byte(source))
		require.NoError(f, err)
		scripts[i] = script
	}
	pool := lua.NewPool(lua.DefaultLimits())
	f.Fuzz(func(t *testing.T, reply string, three bool) {
		var got [4]string
		for i, script := range scripts {
			w := resp.Writer{Proto: 2}
			if three {
				w.Proto = 3
			}
			r := pool.Get()
			r.Execute(script, nil, nil, &scripted{reply: reply}, &w)
			pool.Put(r)
			got[i] = strings.ReplaceAll(string(w.Buf), script.SHA(), "")
		}
		require.Equal(t, got[0], got[1])
		require.Equal(t, got[2], got[3])
	})
}

// reply returns a random reply in RESP2.
func reply(random *rand.Rand, depth int) string {
	switch kind := random.IntN(9); {
	case kind < 3:
		return ":" + strconv.FormatInt(random.Int64N(1<<random.IntN(62)+1)-5, 10) + "\r\n"
	case kind == 3:
		return "$-1\r\n"
	case kind == 4:
		return "+OK\r\n"
	case kind == 5 && depth > 0:
		return "-ERR no\r\n"
	case kind < 7 || depth > 6:
		s := strings.Repeat("s", random.IntN(20))
		return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n"
	}
	n := random.IntN(5)
	out := "*" + strconv.Itoa(n) + "\r\n"
	for range n {
		out += reply(random, depth+1)
	}
	return out
}
