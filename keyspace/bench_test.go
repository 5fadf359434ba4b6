package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
)

// keyBlock holds n keys of 16 bytes in one piece of memory, so that they do not
// disturb what is measured by lying all over the heap.
type keyBlock []byte

func newKeyBlock(n int) keyBlock {
	b := make(keyBlock, 0, 16*n)
	for i := range n {
		b = fmt.Appendf(b, "user:%011d", i)
	}
	return b
}

func (b keyBlock) at(i int) []byte { return b[16*i : 16*i+16] }

// fill makes n cells whose keys have the given length.
func fill(t testing.TB, v *keyspace.Handle, n, length int) {
	q := quota(t)
	k := make([]byte, 0, length)
	for i := range n {
		k = fmt.Appendf(k[:0], "user:%0*d", length-5, i)
		if _, err := v.Throttle(0, k, q, 1); err != nil {
			require.NoError(t, err)
		}
	}
}

// BenchmarkThrottle calls random keys that exist.
func BenchmarkThrottle(b *testing.B) {
	for _, name := range []string{"dense", "map"} {
		for _, n := range []int{1, 1000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/keys=%d", name, n), func(b *testing.B) {
				ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)}.With(name))
				defer ks.Close()
				v, q, keys := ks.NewHandle(), quota(b), newKeyBlock(n)
				for i := range n {
					_, err := v.Throttle(0, keys.at(i), q, 1)
					require.NoError(b, err)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				b.ReportAllocs()
				for b.Loop() {
					_, _ = v.Throttle(0, keys.at(rng.IntN(n)), q, 1)
				}
			})
		}
	}
}

// BenchmarkInsert makes a million keys and reports the time of one.
func BenchmarkInsert(b *testing.B) {
	const n = 1_000_000
	keys := newKeyBlock(n)
	for _, name := range []string{"dense", "map"} {
		b.Run(name, func(b *testing.B) {
			q := quota(b)
			b.ReportAllocs()
			for b.Loop() {
				ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)}.With(name))
				v := ks.NewHandle()
				for i := range n {
					_, _ = v.Throttle(0, keys.at(i), q, 1)
				}
				ks.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
		})
	}
}

// BenchmarkSweep removes a million keys that have all expired and reports the time
// for one.
func BenchmarkSweep(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		b.StopTimer()
		clock := clocktest.New(t0)
		ks := keyspace.New(keyspace.Options{Clock: clock})
		fill(b, ks.NewHandle(), n, 16)
		clock.Advance(1e12)
		b.StartTimer()
		for ks.Sweep(1<<16).Removed > 0 {
		}
		b.StopTimer()
		ks.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
}
