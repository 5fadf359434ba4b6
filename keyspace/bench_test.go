package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
)

// keyBlock holds n keys of 16 bytes in one piece of memory, so that keys scattered over the heap do
// not disturb the measurement.
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
	a := &decide.Ask{Family: decide.Cell, Quota: *quota(t), Quantity: 1}
	k := make([]byte, 0, length)
	for i := range n {
		k = fmt.Appendf(k[:0], "user:%0*d", length-5, i)
		a.Key = k
		if v.Decide(a); a.Err != nil {
			require.NoError(t, a.Err)
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
				v, keys := ks.NewHandle(), newKeyBlock(n)
				a := &decide.Ask{Family: decide.Cell, Quota: *quota(b), Quantity: 1}
				for i := range n {
					a.Key = keys.at(i)
					v.Decide(a)
					require.NoError(b, a.Err)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				b.ReportAllocs()
				for b.Loop() {
					a.Key = keys.at(rng.IntN(n))
					v.Decide(a)
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
			a := &decide.Ask{Family: decide.Cell, Quota: *quota(b), Quantity: 1}
			b.ReportAllocs()
			for b.Loop() {
				ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)}.With(name))
				v := ks.NewHandle()
				for i := range n {
					a.Key = keys.at(i)
					v.Decide(a)
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
