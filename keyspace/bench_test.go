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

// BenchmarkThrottle calls random keys that exist.
func BenchmarkThrottle(b *testing.B) {
	for _, name := range []string{"dense", "map"} {
		for _, n := range []int{1, 1000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/keys=%d", name, n), func(b *testing.B) {
				ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)}.With(name))
				defer ks.Close()
				v, q, keys := ks.NewView(), quota(b), newKeyBlock(n)
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
				v := ks.NewView()
				for i := range n {
					_, _ = v.Throttle(0, keys.at(i), q, 1)
				}
				ks.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
		})
	}
}
