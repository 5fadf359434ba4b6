package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
)

// overwrite does one random operation that stores or removes a string or a collection of any size,
// under key and perhaps other.
func overwrite(v *keyspace.Handle, rng *rand.Rand, key, other []byte) {
	value := make([]byte, 2000)
	number := func() []byte { return fmt.Append(nil, rng.IntN(400)) }
	db, n := rng.IntN(2), []int{1, 3, 300}[rng.IntN(3)]
	switch rng.IntN(15) {
	case 0:
		_, _ = v.SetString(db, key, value[:rng.IntN(len(value))], keyspace.SetOptions{Expiry: v.Now().Add(time.Second)})
	case 1:
		_, _ = v.SetString(db, key, value[:rng.IntN(40)], keyspace.SetOptions{Expiry: entry.NoExpiry, KeepTTL: rng.IntN(2) == 0})
	case 2:
		_, _ = v.SetStrings(db, [][]byte{key, value[:10], other, value[:1000]}, false)
	case 3, 4:
		v.Rename(db, key, other, false)
	case 5, 6:
		v.Expire(db, key, v.Now().Add(time.Duration(1+rng.IntN(900))*time.Millisecond), 0)
	case 7:
		if e, ok := v.Load(db, key); ok { // as COPY does
			_ = v.Put(1-db, other, e.Kind, e.Value, e.Expiry)
		}
	case 8, 9:
		_ = v.WriteHash(db, key, func(h *collection.Hash) error {
			for range n {
				_, _ = h.Set(number(), number())
				h.Delete(number())
			}
			return nil
		})
	case 10:
		_ = v.WriteSortedSet(db, key, func(z *collection.SortedSet) error {
			for range n {
				_, _ = z.Set(number(), float64(rng.IntN(9)))
			}
			return nil
		})
	case 11:
		_ = v.WriteList(db, key, func(l *collection.List) error {
			for range n {
				_ = l.PushBack(number())
			}
			if rng.IntN(3) == 0 {
				l.Trim(0, 2)
			}
			return nil
		})
	case 12:
		_, _ = v.ExtendString(db, key, value[:rng.IntN(30)], 5000)
		_, _ = v.AddInt(db, other, 7)
	case 13:
		v.Delete(db, key)
	default:
		_ = v.WriteSet(db, key, func(s *collection.Set) error {
			for range n {
				_, _ = s.Add(number())
			}
			return nil
		})
	}
}

// Whatever value replaces another, whether either expires later, has expired or never does, and
// whether either is large: no large collection is leaked or freed twice. Memory and counts are
// those of the present keys.
func TestOverwritesLeaveNothingBehind(t *testing.T) {
	effort.Alone(t)
	ks, v, j, clock := journalled(t)
	rng := rand.New(rand.NewPCG(8, 9))
	key := func() []byte { return fmt.Append(nil, "k", rng.IntN(6)) }
	for i := range 6000 {
		clock.Advance(time.Duration(rng.IntN(200)) * time.Millisecond)
		v.Refresh()
		overwrite(v, rng, key(), key())
		if i%100 == 50 {
			ks.Sweep(1 << 20)
		}
		if i%300 < 299 {
			continue
		}
		again := keyspace.New(keyspace.Options{Clock: clock, Databases: 2})
		j.replay(t, again, 0)
		require.Equal(t, all(ks), all(again))
		again.Close()
		v.FlushAll()
		require.Zero(t, ks.Stats().Memory, "after %d calls", i)
		require.Equal(t, [64]int{}, ks.Stats().Kinds)
	}
}

// The place that Prefetch has found for a key is not used once the key, or another key whose record
// takes that place, has been stored, moved, removed or flushed: the result is the same as without
// Prefetch.
func TestPrefetchBeforeOverwrites(t *testing.T) {
	effort.Alone(t)
	clock := clocktest.New(t0)
	options := keyspace.Options{Clock: clock, Databases: 2, Shards: 2}
	with, without := keyspace.New(options), keyspace.New(options)
	defer with.Close()
	defer without.Close()
	v, w := with.NewHandle(), without.NewHandle()
	rng := rand.New(rand.NewPCG(31, 32))
	draw := func() []byte { return fmt.Append(nil, "key:", rng.IntN(50)) }
	for round := range 600 {
		clock.Advance(time.Duration(rng.IntN(300)) * time.Millisecond)
		keys := make([][]byte, 2+rng.IntN(31))
		for i := range keys {
			keys[i] = draw()
		}
		require.True(t, v.Enter())
		v.Refresh()
		w.Refresh()
		v.Prefetch(rng.IntN(2), keys)
		for _, key := range keys {
			other, seed := draw(), rng.Uint64()
			overwrite(v, rand.New(rand.NewPCG(seed, 1)), key, other)
			overwrite(w, rand.New(rand.NewPCG(seed, 1)), key, other)
			if rng.IntN(500) == 0 {
				v.Flush(0)
				w.Flush(0)
			}
		}
		v.Leave()
		if round%10 == 9 {
			require.Equal(t, all(without), all(with), "round %d", round)
		}
		if round%50 == 49 {
			with.Sweep(1 << 20)
		}
	}
	v.FlushAll()
	require.Zero(t, with.Stats().Memory)
}
