package server_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestHeapBoundFollowsMaxmemory: the limit of Go's runtime is the rest of maxmemory without the
// memory of tables outside of its heap, also after CONFIG SET changes it.
func TestHeapBoundFollowsMaxmemory(t *testing.T) {
	var mu sync.Mutex
	var told []int64
	last := func() int64 {
		mu.Lock()
		defer mu.Unlock()
		if len(told) == 0 {
			return 0
		}
		return told[len(told)-1]
	}
	limitHeap := func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, n)
		return 0
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartWith(func(o *server.Options) { o.LimitHeap = limitHeap })
		require.Zero(t, last(), "without maxmemory Go's own setting stays")
		cl := s.Dial()
		const mib = 1 << 20
		require.Equal(t, inproc.OK, cl.Do("CONFIG", "SET", "maxmemory", "100mb"))
		require.EqualValues(t, 138_412_032, last(), "six sevenths of 110 + 64 - 20 MiB")
		require.Equal(t, inproc.OK, cl.Do("CONFIG", "SET", "maxmemory", "200mb"))
		const large = 237_277_770 // six sevenths of 220 + 64 - 20 MiB
		require.EqualValues(t, large, last())
		for i := range 100_000 {
			cl.Command("CL.THROTTLE", fmt.Sprintf("key:%030d", i), "15", "1", "3600")
			if i%1000 == 999 {
				for range 1000 {
					require.Equal(t, byte('*'), cl.Reply()[0])
				}
			}
		}
		outside := s.Keyspace().Outside()
		if outside > 0 { // where tables are in Go's heap there is nothing to subtract
			require.Greater(t, outside, int64(4*mib))
			w.Advance(time.Second)
			require.LessOrEqual(t, last(), large-outside/7*6+mib, "the growth of the tables is taken off")
		}
		require.Equal(t, inproc.OK, cl.Do("CONFIG", "SET", "maxmemory", "4gb"))
		require.LessOrEqual(t, last(), int64(4506+64-20-48+1)*mib-outside)
		require.Greater(t, last(), int64(4506+64-20-48-2)*mib-outside)
		require.Equal(t, inproc.OK, cl.Do("CONFIG", "SET", "maxmemory", "1mb"))
		require.GreaterOrEqual(t, last(), int64(32*mib), "whatever the bound, Go can work")
		require.Equal(t, inproc.OK, cl.Do("CONFIG", "SET", "maxmemory", "0"))
		require.EqualValues(t, math.MaxInt64, last())
	})
}
