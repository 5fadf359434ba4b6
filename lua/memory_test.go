package lua_test

import (
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

const mib = 1 << 20

// heapNow returns the bytes of objects on the heap, including garbage.
func heapNow() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// allocatedNow returns the bytes that were ever allocated.
func allocatedNow() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// hogs want more memory than any script may have.
var hogs = []string{
	"local t = {} for i = 1, 1000 do t[i] = string.rep('x', 16000000) end return #t",
	"local t = {} for i = 1, 100 do t[i] = string.rep('x', 16000000) end return #t",
	"local t = {} for i = 1, 1e7 do t[i] = 'key' .. i end return #t",
	"local t = {} for i = 1, 1e6 do t[i] = {[1] = 1, [65535] = 1} t[i][65535] = 2 end return #t",
	"local t = {} for i = 1, 1e7 do t[i] = function() return i end end return #t",
	"local s, t = ('x'):rep(4e6), {} for i = 1, 1000 do t[i] = string.format('%s%s%s', s, s, s) end return #t",
	"local t = {} for i = 1, 1000 do t[i] = ('ab'):rep(4e4):gsub('a', ('y'):rep(100)) end return #t",
	"local s, t = ('x'):rep(4e6), {} for i = 1, 1000 do t[i] = struct.pack('c0c0', s, s) end return #t",
	"local s, t = {('x'):rep(4e6)}, {} for i = 1, 1000 do t[i] = cjson.encode(s) end return #t",
	"local s, t = {('x'):rep(4e6)}, {} for i = 1, 1000 do t[i] = cmsgpack.pack(s) end return #t",
	"local s, t = {('x'):rep(4e6), 'y'}, {} for i = 1, 1000 do t[i] = table.concat(s) end return #t",
	"local t = {} for i = 1, 900 do t[i] = coroutine.wrap(function() local s = ('x'):rep(1e6) .. i coroutine.yield() return s end) t[i]() end return #t",
	"local t, s = {}, ('x'):rep(8e6) for i = 1, 1000 do local _, e = pcall(error, s .. i) t[i] = e end return #t",
	"local t, s = {}, ('x'):rep(8e6) for i = 1, 1000 do local _, e = pcall(function() local n return n[s] end) t[i] = e end return #t",
	"local t = {} for i = 1, 1000 do t[i] = redis.call('echo', ('x'):rep(4e6)) end return #t",
}

const notEnough = "-ERR not enough memory script: "

// TestKilledScriptsLeaveNothingBehind: the memory that scripts can reach plus their garbage stays
// within one bound, however many were killed before.
func TestKilledScriptsLeaveNothingBehind(t *testing.T) {
	limits := lua.DefaultLimits()
	limits.Memory = 64 * mib
	pool := lua.NewPool(limits)
	runtime.GC()
	before := heapNow()
	for round := range effort.Steps(8, 50) {
		require.Contains(t, runIn(pool, hogs[0]), notEnough, "round %d", round)
		require.Less(t, heapNow()-before, limits.Memory*3/2+32*mib, "round %d", round)
		require.Contains(t, runIn(pool, hogs[1]), notEnough, "round %d", round)
		require.Equal(t, ":1\r\n", runIn(pool, "local s = ('x'):rep(16000000) return 1"), "round %d", round)
	}
}

// TestScriptsKeepToTheRoomThereIs: with a bound on the heap no mixture of scripts, run one after
// another or concurrently, exceeds it by more than what one instruction of each can take. Scripts
// that fit always run.
func TestScriptsKeepToTheRoomThereIs(t *testing.T) {
	limits := lua.DefaultLimits()
	runtime.GC()
	bound := heapNow() + 96*mib
	limits.Room = func() (int64, int64) { return bound, 0 }
	var freed atomic.Int64
	limits.FreeGarbage = func() { freed.Add(1) }
	pool := lua.NewPool(limits)
	for _, hog := range hogs {
		require.Contains(t, runIn(pool, hog), notEnough, hog)
		require.Less(t, heapNow(), bound+16*mib, hog)
		require.Equal(t, ":1\r\n", runIn(pool, "local s = ('x'):rep(16000000) return 1"), "after %s", hog)
	}
	require.Positive(t, freed.Load())

	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 3 {
				runIn(pool, hogs[(i+n)%len(hogs)])
				if now := heapNow(); now > bound+64*mib {
					t.Errorf("%d MiB beyond the bound", (now-bound)/mib)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, ":1\r\n", runIn(pool, "local s = ('x'):rep(16000000) return 1"))
}

// TestSmallScriptsRunWhereMemoryIsFull: a script that takes little runs even if other data has used
// up the bound.
func TestSmallScriptsRunWhereMemoryIsFull(t *testing.T) {
	limits := lua.DefaultLimits()
	limits.Room = func() (int64, int64) { return 0, 0 }
	pool := lua.NewPool(limits)
	require.Equal(t, ":500500\r\n", runIn(pool, "local n = 0 for i = 1, 1000 do n = n + i end return n"))
	require.Equal(t, "$100000\r\n"+strings.Repeat("x", 100000)+"\r\n", runIn(pool, "return ('x'):rep(100000)"))
	require.Contains(t, runIn(pool, "return #('x'):rep(4000000)"), notEnough)
}

// TestGarbageIsNoReasonToEndAScript: a script may produce any amount of garbage.
func TestGarbageIsNoReasonToEndAScript(t *testing.T) {
	effort.Alone(t)
	limits := lua.DefaultLimits()
	limits.Memory = 64 * mib
	runtime.GC()
	bound := heapNow() + 96*mib
	limits.Room = func() (int64, int64) { return bound, 0 }
	pool := lua.NewPool(limits)
	for range 3 {
		require.Equal(t, ":1\r\n", runIn(pool, "for i = 1, 200 do local s = ('x'):rep(8000000) .. i end return 1"))
	}
}

// TestKeysOfAScriptAreNotItsMemory: the memory of keys that a script adds is limited by maxmemory
// and not by the script's bound.
func TestKeysOfAScriptAreNotItsMemory(t *testing.T) {
	limits := lua.DefaultLimits()
	limits.Memory = 16 * mib
	keys := &keeping{}
	limits.Room = func() (int64, int64) { return 1 << 40, int64(len(keys.kept)) * mib }
	pool := lua.NewPool(limits)
	script, err := lua.Compile([]byte("local s = ('x'):rep(1048576) for i = 1, 60 do redis.call('set', i, s) end return 1"))
	require.NoError(t, err)
	r := pool.Get()
	var w resp.Writer
	r.Execute(script, nil, nil, keys, &w)
	pool.Put(r)
	require.Equal(t, ":1\r\n", string(w.Buf))
	require.Len(t, keys.kept, 60)
}

// keeping is a host that stores all arguments.
type keeping struct{ kept [][]byte }

func (*keeping) Log(int, []byte) {}
func (k *keeping) Call(args [][]byte, _ int) ([]byte, []shared.Ref) {
	k.kept = append(k.kept, append([]byte(nil), args[2]...))
	return []byte("+OK\r\n"), nil
}

// TestLargeResultTakesItsMemoryOnce: the reply of a script is reserved and allocated at once, and
// not in steps that each copy the previous content.
func TestLargeResultTakesItsMemoryOnce(t *testing.T) {
	pool := lua.NewPool(lua.DefaultLimits())
	const source = "local s = ('x'):rep(1000000) local t = {} for i = 1, 60 do t[i] = s end return t"
	script, err := lua.Compile([]byte(source))
	require.NoError(t, err)
	r := pool.Get()
	var w resp.Writer
	before := allocatedNow()
	r.Execute(script, nil, nil, &echo{}, &w)
	allocated := allocatedNow() - before
	pool.Put(r)
	require.Greater(t, len(w.Buf), 60_000_000)
	most := int64(len(w.Buf)) + 8*mib
	if effort.RaceDetector {
		most += int64(len(w.Buf))
	}
	require.Less(t, allocated, most)

	runtime.GC()
	bound := heapNow() + 40*mib
	limits := lua.DefaultLimits()
	limits.Room = func() (int64, int64) { return bound, 0 }
	require.Contains(t, runIn(lua.NewPool(limits), source), "-ERR not enough memory script: ")
}

// TestLongErrorsTakeNoMoreThanTheirMemory: error messages that contain a long string are counted
// like any other string.
func TestLongErrorsTakeNoMoreThanTheirMemory(t *testing.T) {
	effort.Alone(t)
	for _, source := range []string{
		"local s = ('x'):rep(15000000) for i = 1, 30 do pcall(function() local n return n[s] end) end return 1",
		"local s = ('x'):rep(15000000) for i = 1, 30 do pcall(function() return _G[s] end) end return 1",
		"local s = ('x'):rep(15000000) for i = 1, 30 do pcall(error, s .. i) end return 1",
		"local s = ('x'):rep(15000000) for i = 1, 30 do redis.error_reply(s) end return 1",
		"local s = ('x'):rep(15000000) for i = 1, 30 do redis.log(3, s, s, s, s) end return 1",
	} {
		limits := lua.DefaultLimits()
		runtime.GC()
		bound := heapNow() + 160*mib
		limits.Room = func() (int64, int64) { return bound, 0 }
		require.Equal(t, ":1\r\n", runIn(lua.NewPool(limits), source), source)
		require.Less(t, heapNow(), bound+64*mib, source)
	}
}
