package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
)

// scanAll returns how often a whole iteration with this count sees each key.
func scanAll(v *keyspace.Handle, db, count int) map[string]int {
	seen := map[string]int{}
	for c := uint64(0); ; {
		c = v.Scan(db, c, count, func(key []byte, _ entry.Kind) { seen[string(key)]++ })
		if c == 0 {
			return seen
		}
	}
}

func TestScan(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		_, v, c := open(t, o)
		require.Empty(t, scanAll(v, 0, 10))
		const n = 5000
		for i := range n {
			require.NoError(t, v.Put(i%2, key(i), entry.String, nil, t0.Add(time.Duration(1+i/1000)*time.Second)))
		}
		for _, count := range []int{1, 10, 1000, 1 << 30} {
			seen := scanAll(v, 1, count)
			require.Len(t, seen, n/2)
			for k, times := range seen {
				require.Equal(t, 1, times, k)
			}
		}
		steps := 0
		for cur := uint64(0); ; steps++ {
			if cur = v.Scan(0, cur, 10, func([]byte, entry.Kind) {}); cur == 0 {
				break
			}
			require.Less(t, cur, uint64(1)<<48)
		}
		require.Greater(t, steps, n/2/1000, "a step is no whole iteration")
		c.Advance(time.Second)
		v.Refresh()
		require.Len(t, scanAll(v, 0, 100), (n-1000)/2, "what has expired is not shown")
	})
}

func TestScanTakesAnyCursor(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	for i := range 1000 {
		require.NoError(t, v.Put(0, key(i), entry.String, nil, entry.NoExpiry))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		cur := rng.Uint64() >> rng.IntN(64)
		for steps := 0; cur != 0 && steps < 5000; steps++ {
			cur = v.Scan(0, cur, 10, func([]byte, entry.Kind) {})
		}
		require.Zero(t, cur, "every iteration ends")
	}
}

// TestScanUnderChange has writers grow and shrink the database, and flush other databases, while
// others iterate: keys that exist throughout are seen.
func TestScanUnderChange(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		ks, v, _ := open(t, o)
		const steady = 2000
		for i := range steady {
			require.NoError(t, v.Put(0, fmt.Append(nil, "steady", i), entry.String, nil, entry.NoExpiry))
		}
		var done atomic.Bool
		var writers, readers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				v, rng := ks.NewHandle(), rand.New(rand.NewPCG(uint64(w), 1))
				for i := 0; !done.Load(); i++ {
					k := fmt.Append(nil, "other", w, rng.IntN(30_000))
					if (i/20_000)%2 == 0 {
						_ = v.Put(0, k, entry.String, make([]byte, rng.IntN(100)), entry.NoExpiry)
					} else {
						v.Delete(0, k)
					}
					if i%5000 == 0 {
						v.Flush(1 + w)
					}
				}
			})
		}
		for r := range 2 {
			readers.Go(func() {
				v := ks.NewHandle()
				for round := range 8 {
					seen := scanAll(v, 0, 1+round*round*13+r)
					for i := range steady {
						if seen[fmt.Sprint("steady", i)] == 0 {
							t.Error("not seen", i)
						}
					}
				}
			})
		}
		readers.Wait()
		done.Store(true)
		writers.Wait()
	})
}

func TestRandomKey(t *testing.T) {
	effort.Alone(t)
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		_, v, c := open(t, o)
		_, ok := v.RandomKey(nil, 0)
		require.False(t, ok)
		const n, draws = 100, 20_000
		for i := range n {
			require.NoError(t, v.Put(0, key(i), entry.String, nil, entry.NoExpiry))
		}
		hits := map[string]int{}
		for range draws {
			k, ok := v.RandomKey([]byte("> "), 0)
			require.True(t, ok)
			hits[string(k)]++
		}
		require.Len(t, hits, n)
		for k, h := range hits {
			require.InDelta(t, draws/n, h, 90, k)
		}
		// One live key among thousands that have expired and are not removed yet.
		for i := range 5000 {
			require.NoError(t, v.Put(1, key(i), entry.String, nil, t0.Add(1)))
		}
		require.NoError(t, v.Put(1, []byte("alive"), entry.String, nil, entry.NoExpiry))
		c.Advance(1)
		v.Refresh()
		k, ok := v.RandomKey(nil, 1)
		require.True(t, ok)
		require.Equal(t, "alive", string(k))
		v.Delete(1, []byte("alive"))
		_, ok = v.RandomKey(nil, 1)
		require.False(t, ok)
	})
}

func TestScanEntriesShowsValues(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	for i := range 1000 {
		require.NoError(t, v.Put(0, key(i), entry.String, key(i*i), entry.NoExpiry))
	}
	seen := map[string]string{}
	for c := uint64(0); ; {
		c = v.ScanEntries(0, c, 64, func(k []byte, e entry.Entry) { seen[string(k)] = string(e.Value) })
		if c == 0 {
			break
		}
	}
	require.Len(t, seen, 1000)
	for i := range 1000 {
		require.Equal(t, string(key(i*i)), seen[string(key(i))])
	}
}
