package persistence_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/slidingwindow"
)

// element does one operation on a key of many elements, and returns its result and the visible
// state of the key afterwards.
func element(v *keyspace.Handle, kind int, key []byte, rng *rand.Rand) string {
	n, away, seed := 1+rng.IntN(2)*rng.IntN(60), rng.IntN(3) == 0, rng.Uint64()
	own := rand.New(rand.NewPCG(seed, 5))
	word := func() []byte { return fmt.Appendf(nil, "element:%d", own.IntN(120)) }
	var out []any
	switch kind {
	case 0:
		out = append(out, v.WriteHash(0, key, func(h *collection.Hash) error {
			for range n {
				if away {
					h.Delete(word())
				} else if _, err := h.Set(word(), word()); err != nil {
					return err
				}
			}
			return nil
		}))
	case 1:
		out = append(out, v.WriteSortedSet(0, key, func(z *collection.SortedSet) error {
			for range n {
				if away {
					z.RemoveRange(0, 1)
				} else if _, err := z.Set(word(), own.Float64()); err != nil {
					return err
				}
			}
			return nil
		}))
	case 2:
		out = append(out, v.WriteList(0, key, func(l *collection.List) error {
			for range n {
				if away {
					l.PopFront()
				} else if err := l.PushBack(word()); err != nil {
					return err
				}
			}
			return nil
		}))
	case 3:
		n := own.Int64N(4)
		d, err := asks.Allow(v, 0, key, &slidingwindow.Call{Mode: slidingwindow.Log, Limit: 40, Window: time.Minute, Quantity: n})
		return fmt.Sprint(d, err)
	case 4:
		n := own.Int64N(4)
		d, err := asks.Allow(v, 0, key, &slidingwindow.Call{Mode: slidingwindow.Buckets, Limit: 40, Window: time.Minute, Slots: 60, Quantity: n})
		return fmt.Sprint(d, err)
	case 5:
		c := &concurrency.Call{Op: concurrency.Op(own.IntN(3)), Member: word()}
		if c.Op != concurrency.Release {
			c.Lease = time.Minute
		}
		if c.Op == concurrency.Acquire {
			c.Limit = 30
		}
		d, err := asks.Lease(v, 0, key, c)
		return fmt.Sprint(d, err)
	default:
		sum, err := v.AddInt(0, key, own.Int64N(100))
		return fmt.Sprint(sum, err)
	}
	e, ok := v.Load(0, key)
	return fmt.Sprint(out, e.Kind, e.Expiry, e.Value, ok)
}

// A server that is killed and started again, with base and log in any state, has the same elements
// as one that was not; and a key that expired while it was down and is made again is new.
func TestRestartsKeepElements(t *testing.T) {
	effort.Alone(t)
	const calls, kinds = 30_000, 7
	clock := clocktest.New(begin)
	plain := keyspace.New(keyspace.Options{Clock: clock, Shards: 4})
	defer plain.Close()
	through := plain.NewHandle()
	fsys := faultfs.New()
	s, err := open(t, fsys, clock, persistence.SyncEverySecond)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range calls {
		clock.Advance(time.Duration(rng.IntN(20e6)))
		through.Refresh()
		s.handle.Refresh()
		kind := rng.IntN(kinds)
		key, seed := fmt.Appendf(nil, "key:%d:%d", kind, rng.IntN(5)), rng.Uint64()
		both := func(do func(v *keyspace.Handle) any) {
			require.Equal(t, do(through), do(s.handle), "call %d, kind %d", i, kind)
		}
		switch rng.IntN(40) {
		case 0:
			both(func(v *keyspace.Handle) any { return v.Delete(0, key) })
		case 1, 2, 3:
			at := clock.Now().Add(time.Duration(1+rng.IntN(20)) * time.Second)
			both(func(v *keyspace.Handle) any { return v.Expire(0, key, at, 0) })
		case 4, 5:
			both(func(v *keyspace.Handle) any { return v.Persist(0, key) })
		case 6:
			to := fmt.Appendf(nil, "key:%d:%d", kind, rng.IntN(5))
			both(func(v *keyspace.Handle) any {
				renamed, found := v.Rename(0, key, to, false)
				return [2]bool{renamed, found}
			})
		default:
			both(func(v *keyspace.Handle) any { return element(v, kind, key, rand.New(rand.NewPCG(seed, 6))) })
		}
		if i%4_000 == 2_500 {
			_, err := s.dir.Rewrite(s.ks)
			require.NoError(t, err)
		}
		if i%1_500 == 1_499 {
			require.Equal(t, persistence.Kept, s.settled())
			fsys = fsys.Kill()
			s.ks.Close()
			clock.Advance(time.Duration(rng.IntN(8)) * time.Second)
			s, err = open(t, fsys, clock, persistence.SyncEverySecond)
			require.NoError(t, err)
		}
	}
	s.close()
	var report bytes.Buffer
	require.NoError(t, persistence.Check(fsys, "data", false, &report))
	require.Contains(t, report.String(), "the log is whole")
	report.Reset()
	require.NoError(t, persistence.Dump(fsys, "data", &report))
	require.Contains(t, report.String(), `"op":"patch"`)
	require.Contains(t, report.String(), `"delta_base64":"`)
}
