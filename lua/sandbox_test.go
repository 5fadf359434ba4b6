package lua_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// census is a script that describes everything a script can see of its state.
const census = `
local seen, out = {}, {}
local function walk(path, t)
	if seen[t] then return end
	seen[t] = true
	local names = {}
	for k, v in pairs(t) do names[#names + 1] = tostring(k) end
	table.sort(names)
	for _, k in ipairs(names) do
		local v = rawget(t, k)
		out[#out + 1] = path .. '.' .. k .. '=' .. (type(v) == 'table' and 'table' or tostring(v))
		if type(v) == 'table' then walk(path .. '.' .. k, v) end
	end
	out[#out + 1] = tostring(getmetatable(t))
end
walk('_G', _G)
out[#out + 1] = tostring(getmetatable('').__index == string) .. ('x'):upper() .. ('2' + 3)
out[#out + 1] = cjson.encode({1 / 3, {}}) .. cjson.encode_max_depth() .. tostring(cjson.encode_sparse_array()) .. tostring(redis.call('get', 'none'))
return table.concat(out, '\n')`

// sandbox is a pool of which one run is used at a time.
type sandbox struct {
	pool   *lua.Pool
	census *lua.Script
	moment time.Duration
}

func newSandbox(t testing.TB) *sandbox {
	limits := lua.DefaultLimits()
	limits.Memory = 64 << 20
	limits.PatternSteps = 200_000
	limits.Strings = 1 << 20
	script, err := lua.Compile([]byte(census))
	require.NoError(t, err)
	return &sandbox{pool: lua.NewPool(limits), census: script, moment: 50 * time.Millisecond}
}

// execute runs s, kills it after a moment, and returns its reply.
func (b *sandbox) execute(s *lua.Script, host lua.Host, keys ...string) (string, *lua.Run) {
	r := b.pool.Get()
	timer := time.AfterFunc(b.moment, func() { r.Kill("killed by the test") })
	var w resp.Writer
	list := make([][]byte, len(keys))
	for i, k := range keys {
		list[i] = []byte(k)
	}
	r.Execute(s, list, [][]byte{[]byte("12"), []byte("y")}, host, &w)
	timer.Stop()
	b.pool.Put(r)
	return string(w.Buf), r
}

// untouched returns what the next run would see.
func (b *sandbox) untouched() (string, *lua.Run) {
	r := b.pool.Get()
	var w resp.Writer
	r.Execute(b.census, nil, nil, &echo{}, &w)
	b.pool.Put(r)
	return string(w.Buf), r
}

// wellFormed parses one reply and returns the bytes after it.
func wellFormed(t testing.TB, b string, depth int) string {
	require.Less(t, depth, 200)
	head, rest, found := strings.Cut(b, "\r\n")
	require.True(t, found, b)
	require.NotEmpty(t, head)
	n := 0
	for _, c := range head[1:] {
		if c >= '0' && c <= '9' && n < 1<<40 {
			n = n*10 + int(c-'0')
		}
	}
	switch head[0] {
	case '$':
		if head == "$-1" {
			return rest
		}
		require.GreaterOrEqual(t, len(rest), n+2)
		require.Equal(t, "\r\n", rest[n:n+2])
		return rest[n+2:]
	case '*':
		for range n {
			rest = wellFormed(t, rest, depth+1)
		}
		return rest
	}
	require.Contains(t, "+-:", head[:1])
	return rest
}

// FuzzSandbox runs random scripts. None may crash, hang, return anything other than one reply, or
// leave a trace for the next.
func FuzzSandbox(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		seed := make([]byte, 20+random.IntN(150))
		for i := range seed {
			seed[i] = byte(random.IntN(256))
		}
		f.Add(seed)
	}
	box := newSandbox(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := grammar{data: data[:min(len(data), 600)]}
		source := g.script()
		script, err := lua.Compile([]byte(source))
		if err != nil {
			require.Contains(t, err.Error(), "ERR Error compiling script")
			return
		}
		before, old := box.untouched()
		reply, _ := box.execute(script, &echo{}, "k1", "k2")
		require.Empty(t, wellFormed(t, reply, 0), source)
		after, now := box.untouched()
		if old == now {
			require.Equal(t, before, after, source)
		}
	})
}

// witness records the commands that a script calls.
type witness struct {
	echo
	calls [][]string
}

func (w *witness) Call(args [][]byte, proto int) ([]byte, []shared.Ref) {
	call := make([]string, len(args))
	for i, a := range args {
		call[i] = string(a)
	}
	w.calls = append(w.calls, call)
	return w.echo.Call(args, proto)
}

// FuzzAnalysis compares what the analysis of a script's text promises with what the script does.
func FuzzAnalysis(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		seed := make([]byte, 10+random.IntN(100))
		for i := range seed {
			seed[i] = byte(random.IntN(256))
		}
		f.Add(seed)
	}
	box := newSandbox(f)
	box.moment = time.Minute // scripts that end by themselves get more time
	f.Fuzz(func(t *testing.T, data []byte) {
		g := grammar{data: data[:min(len(data), 400)], calm: true}
		source := g.script()
		script, err := lua.Compile([]byte(source))
		if err != nil || !script.Bounded(2) {
			return
		}
		host := &witness{}
		keys := []string{"key-one", "key-two"}
		reply, _ := box.execute(script, host, keys...)
		require.NotContains(t, reply, "killed", source)
		require.LessOrEqual(t, len(host.calls), 2000)
		calls, known := script.Calls()
		if !known {
			require.Nil(t, calls)
			return
		}
		for _, call := range host.calls {
			require.True(t, promised(calls, keys, call), "%s\n%v", source, call)
		}
	})
}

// promised reports whether one of the analysed calls covers the called command.
func promised(calls []lua.Call, keys, called []string) bool {
	for _, c := range calls {
		if c.Name != called[0] || len(c.Keys) != len(called)-1 {
			continue
		}
		fits := true
		for i, n := range c.Keys {
			if n > 0 && (n > len(keys) || called[i+1] != keys[n-1]) || n < 0 && !slices.Contains(keys, called[i+1]) {
				fits = false
			}
		}
		if fits {
			return true
		}
	}
	return false
}
