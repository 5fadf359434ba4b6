package keyspace_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
)

// resident returns how many bytes of memory this process has.
func resident(t testing.TB) int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int64
	_, err = fmt.Sscan(string(b), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// fill makes n cells whose keys have the given length.
func fill(t testing.TB, v *keyspace.View, n, length int) {
	q := quota(t)
	k := make([]byte, 0, length)
	for i := range n {
		k = fmt.Appendf(k[:0], "user:%0*d", length-5, i)
		if _, err := v.Throttle(0, k, q, 1); err != nil {
			require.NoError(t, err)
		}
	}
}

// TestMemoryIsToldTruly compares what Stats says of a hundred thousand keys with
// what the process takes for them, while they are there and when they are gone.
func TestMemoryIsToldTruly(t *testing.T) {
	const n = 300_000
	clock := clocktest.New(t0)
	ks := keyspace.New(keyspace.Options{Clock: clock})
	defer ks.Close()
	v := ks.NewView()
	fill(t, v, 1, 16)
	before := resident(t)
	fill(t, v, n, 16)
	grew, told := resident(t)-before, ks.Stats().Memory
	t.Logf("%.1f bytes per key, told %.1f", float64(grew)/n, float64(told)/n)
	require.InEpsilon(t, grew, told, 0.15)
	require.Less(t, float64(told)/n, 60.0)

	clock.Advance(1e12)
	for ks.Sweep(1<<20).Removed > 0 {
	}
	require.Zero(t, v.Len(0))
	left, told := resident(t)-before, ks.Stats().Memory
	t.Logf("%d bytes left, told %d", left, told)
	require.Less(t, left, grew/5, "memory goes back as keys expire")
	require.Less(t, told, grew/5)
}

// BenchmarkBytesPerKey reports the resident bytes that one key takes, all in.
func BenchmarkBytesPerKey(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, length := range []int{16, 40} {
			b.Run(fmt.Sprintf("keys=%d/length=%d", n, length), func(b *testing.B) {
				for b.Loop() {
					before := resident(b)
					ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)})
					fill(b, ks.NewView(), n, length)
					b.ReportMetric(float64(resident(b)-before)/float64(n), "resident-B/key")
					b.ReportMetric(float64(ks.Stats().Memory)/float64(n), "told-B/key")
					ks.Close()
				}
			})
		}
	}
}
