package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/keyspace"
)

// Whatever takes the place of whatever, whether either ends some day, has ended
// already or never does, and whether either is large, no large collection stays behind
// nor is forgotten twice: memory and counts are those of what is there.
func TestOverwritesLeaveNothingBehind(t *testing.T) {
	ks, v, j, clock := journalled(t)
	rng := rand.New(rand.NewPCG(8, 9))
	key := func() []byte { return fmt.Append(nil, "k", rng.IntN(6)) }
	value := make([]byte, 2000)
	number := func() []byte { return fmt.Append(nil, rng.IntN(400)) }
	amount := func() int { return []int{1, 3, 300}[rng.IntN(3)] }
	for i := range 6000 {
		clock.Advance(time.Duration(rng.IntN(200)) * time.Millisecond)
		v.Refresh()
		db, k, n := rng.IntN(2), key(), amount()
		switch rng.IntN(13) {
		case 0:
			_, _ = v.SetString(db, k, value[:rng.IntN(len(value))], keyspace.SetOptions{Expiry: v.Now().Add(time.Second)})
		case 1:
			_, _ = v.SetString(db, k, value[:rng.IntN(40)], keyspace.SetOptions{Expiry: keyspace.NoExpiry, KeepTTL: rng.IntN(2) == 0})
		case 2:
			_, _ = v.SetStrings(db, [][]byte{k, value[:10], key(), value[:1000]}, false)
		case 3, 4:
			v.Rename(db, k, key(), false)
		case 5, 6:
			v.Expire(db, k, v.Now().Add(time.Duration(1+rng.IntN(900))*time.Millisecond), 0)
		case 7:
			// What COPY and RESTORE do.
			if e, ok := v.Load(db, k); ok {
				_ = v.Put(1-db, key(), e.Kind, e.Value, e.Expiry)
			}
		case 8, 9:
			_ = v.WriteHash(db, k, func(h *collection.Hash) error {
				for range n {
					_, _ = h.Set(number(), number())
					h.Delete(number())
				}
				return nil
			})
		case 10:
			_ = v.WriteSortedSet(db, k, func(z *collection.SortedSet) error {
				for range n {
					_, _ = z.Set(number(), float64(rng.IntN(9)))
				}
				return nil
			})
		case 11:
			_ = v.WriteList(db, k, func(l *collection.List) error {
				for range n {
					_ = l.PushBack(number())
				}
				if rng.IntN(3) == 0 {
					l.Trim(0, 2)
				}
				return nil
			})
		default:
			_ = v.WriteSet(db, k, func(s *collection.Set) error {
				for range n {
					_, _ = s.Add(number())
				}
				return nil
			})
		}
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
