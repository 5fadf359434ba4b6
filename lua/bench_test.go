package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// five replies to every call with the five integers of a limiter.
type five struct{}

func (five) Log(int, []byte)                           {}
func (five) Call([][]byte, int) ([]byte, []shared.Ref) { return fiveInts, nil }

var fiveInts = []byte("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n")

const passThrough = "return redis.call('cl.throttle',KEYS[1],ARGV[1],ARGV[2],ARGV[3],ARGV[4])"

func BenchmarkPassThrough(b *testing.B) {
	benchmark(b, passThrough)
}

func BenchmarkLoop(b *testing.B) {
	benchmark(b, "local n = 0 for i = 1, 1000 do n = n + i end return n")
}

func benchmark(b *testing.B, source string) {
	script, err := lua.Compile([]byte(source))
	require.NoError(b, err)
	pool := lua.NewPool(lua.DefaultLimits())
	keys := [][]byte{[]byte("user:17")}
	args := [][]byte{[]byte("15"), []byte("30"), []byte("60"), []byte("1")}
	var w resp.Writer
	b.ReportAllocs()
	for b.Loop() {
		w.Buf = w.Buf[:0]
		r := pool.Get()
		r.Execute(script, keys, args, five{}, &w)
		pool.Put(r)
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := lua.Compile([]byte(passThrough))
		require.NoError(b, err)
	}
}

func BenchmarkNewState(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		lua.NewPool(lua.DefaultLimits()).Get()
	}
}

// TestPassThroughAllocates bounds the allocations of the most common script.
func TestPassThroughAllocates(t *testing.T) {
	script, err := lua.Compile([]byte(passThrough))
	require.NoError(t, err)
	pool := lua.NewPool(lua.DefaultLimits())
	keys := [][]byte{[]byte("user:17")}
	args := [][]byte{[]byte("15"), []byte("30"), []byte("60"), []byte("1")}
	var w resp.Writer
	allocations := testing.AllocsPerRun(200, func() {
		w.Buf = w.Buf[:0]
		r := pool.Get()
		r.Execute(script, keys, args, five{}, &w)
		pool.Put(r)
	})
	require.LessOrEqual(t, allocations, 9.0)
	require.Equal(t, string(fiveInts), string(w.Buf))
}

// BenchmarkLongStringsBesideManyArguments measures a reply of 1,000 references. For each the
// replier has to check that it is not part of one of 60,000 arguments.
func BenchmarkLongStringsBesideManyArguments(b *testing.B) {
	script, err := lua.Compile([]byte("local s, t = ('x'):rep(20000), {} for i = 1, 1000 do t[i] = s end return t"))
	require.NoError(b, err)
	frame := make([]byte, 60_000)
	args := make([][]byte, len(frame))
	for i := range args {
		args[i] = frame[i : i+1]
	}
	pool := lua.NewPool(lua.DefaultLimits())
	for b.Loop() {
		r := pool.Get()
		w := resp.Writer{Proto: 2, Ledger: kept{}}
		r.Execute(script, nil, args, &echo{}, &w)
		pool.Put(r)
		require.Len(b, w.Refs, 1000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(1000*b.N), "ns/reference")
}
