package keyspace_test

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// resident returns the resident memory of this process in bytes.
func resident(t testing.TB) int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int64
	_, err = fmt.Sscan(string(b), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// TestStatsReportTheMemoryOfTheProcess compares the memory that Stats reports for many keys with
// the growth of the process, while the keys exist and after they are gone. Other memory of the
// process varies meanwhile, and the kernel frees pages when it likes, so only one of several
// measurements has to agree.
func TestStatsReportTheMemoryOfTheProcess(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector keeps memory of its own beside every byte")
	}
	const n, looks = 300_000, 5
	for look := 1; ; look++ {
		m := measureFootprint(t, n)
		t.Logf("%.1f bytes per key, told %.1f; %d bytes left, told %d", float64(m.grew)/n, float64(m.told)/n, m.left, m.toldLeft)
		fits := math.Abs(float64(m.grew-m.told)) <= 0.15*float64(m.grew) && m.left < m.grew/5
		if fits || look == looks {
			require.InEpsilon(t, m.grew, m.told, 0.15)
			require.Less(t, float64(m.told)/n, 60.0)
			require.Less(t, m.left, m.grew/5, "memory goes back as keys expire")
			require.Less(t, m.toldLeft, m.grew/5)
			return
		}
	}
}

// footprint is the memory that keys take in the process, and what Stats reports of it: while they
// exist, and after they have expired.
type footprint struct{ grew, told, left, toldLeft int64 }

func measureFootprint(t *testing.T, n int) (m footprint) {
	clock := clocktest.New(t0)
	ks := keyspace.New(keyspace.Options{Clock: clock})
	defer ks.Close()
	v := ks.NewHandle()
	fill(t, v, 1, 16)
	before := resident(t)
	fill(t, v, n, 16)
	m.grew, m.told = resident(t)-before, ks.Stats().Memory

	clock.Advance(1e12)
	for ks.Sweep(1<<20).Removed > 0 {
	}
	require.Zero(t, v.Len(0))
	m.left, m.toldLeft = resident(t)-before, ks.Stats().Memory
	return m
}

// BenchmarkBytesPerKey reports the resident bytes per key, including all overhead.
func BenchmarkBytesPerKey(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, length := range []int{16, 40} {
			b.Run(fmt.Sprintf("keys=%d/length=%d", n, length), func(b *testing.B) {
				for b.Loop() {
					before := resident(b)
					ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)})
					fill(b, ks.NewHandle(), n, length)
					b.ReportMetric(float64(resident(b)-before)/float64(n), "resident-B/key")
					b.ReportMetric(float64(ks.Stats().Memory)/float64(n), "told-B/key")
					ks.Close()
				}
			})
		}
	}
}

// TestFloodStaysWithinMaxMemory calls two million different keys with room for far fewer: the
// process does not grow beyond the bound, and the first keys are still limited.
func TestFloodStaysWithinMaxMemory(t *testing.T) {
	effort.Alone(t)
	const most, keys = 16 << 20, 2_000_000
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0), MaxMemory: most})
	defer ks.Close()
	v, a := ks.NewHandle(), &decide.Ask{Family: decide.Cell, Quota: *quota(t), Quantity: 1}
	before := resident(t)
	refused := 0
	for i := range keys {
		a.Key = fmt.Appendf(nil, "flood:%d", i)
		v.Decide(a)
		if a.Err != nil {
			require.ErrorIs(t, a.Err, limit.ErrFull)
			refused++
		}
		if i%1000 == 0 {
			a.Key = []byte("flood:0")
			v.Decide(a)
			require.NoError(t, a.Err)
			require.Equal(t, i/1000 < 15, a.Decision.Allowed())
		}
	}
	require.Greater(t, refused, keys/2)
	require.Greater(t, v.Len(0), 300_000)
	if !effort.RaceDetector { // which needs additional memory for every byte
		require.Less(t, resident(t)-before, int64(most*11/10+8<<20))
	}
	require.Less(t, ks.Stats().Memory, int64(most*11/10))
}
