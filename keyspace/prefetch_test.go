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
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
)

// TestPrefetchDuringChangesIsHarmless looks keys up without a lock while tables grow, shrink and
// are flushed. It may find anything, but must not fault or change anything.
func TestPrefetchDuringChangesIsHarmless(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1), Databases: 2})
	defer ks.Close()
	keys := make([][]byte, 4096)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%0*d", i%90, i)
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			v := ks.NewHandle()
			defer v.Close()
			for i := 0; !done.Load(); i++ {
				from := i * 37 % len(keys)
				v.Prefetch(i%2, keys[from:min(from+70, len(keys))])
			}
		})
	}
	v := ks.NewHandle()
	defer v.Close()
	for round := range 30 {
		for _, key := range keys {
			require.NoError(t, v.Put(round%2, key, entry.String, key, entry.NoExpiry))
		}
		require.Equal(t, len(keys), v.Len(round%2))
		for _, key := range keys[:len(keys)*(round%5)/5] {
			require.True(t, v.Delete(round%2, key))
		}
		if round%7 == 6 {
			v.FlushAll()
			continue
		}
		v.Flush(round % 2)
	}
	done.Store(true)
	readers.Wait()
}

// TestPrefetchKeepsNothingOld does the same operations in two keyspaces. In one of them every key
// has been prefetched, and then perhaps moved, removed, renamed or flushed before its use.
func TestPrefetchKeepsNothingOld(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	clock := clocktest.New(t0)
	with := keyspace.New(keyspace.Options{Clock: clock, Databases: 2, Shards: 2})
	defer with.Close()
	without := keyspace.New(keyspace.Options{Clock: clock, Databases: 2, Shards: 2})
	defer without.Close()
	v, w, other := with.NewHandle(), without.NewHandle(), with.NewHandle()
	q := quota(t)
	draw := func() []byte { return fmt.Appendf(nil, "key:%d", rng.IntN(300)) }
	for range 3000 {
		clock.Advance(time.Duration(rng.IntN(100)) * time.Millisecond)
		keys := make([][]byte, rng.IntN(40))
		for i := range keys {
			keys[i] = draw()
		}
		require.True(t, v.Enter())
		v.Refresh()
		w.Refresh()
		other.Refresh()
		db := rng.IntN(2)
		v.Prefetch(rng.IntN(2), keys)
		for _, key := range keys {
			switch rng.IntN(12) {
			case 0:
				key = draw()
			case 1: // done by another handle in between
				gone := draw()
				require.Equal(t, w.Delete(db, gone), other.Delete(db, gone))
			case 2:
				large := draw()
				value := make([]byte, rng.IntN(100))
				require.NoError(t, other.Put(db, large, entry.String, value, entry.NoExpiry))
				require.NoError(t, w.Put(db, large, entry.String, value, entry.NoExpiry))
			case 3:
				if rng.IntN(100) == 0 {
					other.FlushAll()
					w.FlushAll()
				}
			case 4:
				to := draw()
				moved, found := v.Rename(db, key, to, false)
				movedToo, foundToo := w.Rename(db, key, to, false)
				require.Equal(t, []bool{movedToo, foundToo}, []bool{moved, found})
			}
			got, err := asks.Throttle(v, db, key, q, 1)
			want, wantErr := asks.Throttle(w, db, key, q, 1)
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
		}
		v.Leave()
	}
	require.Equal(t, w.Len(0), v.Len(0))
	require.Equal(t, w.Len(1), v.Len(1))
}
