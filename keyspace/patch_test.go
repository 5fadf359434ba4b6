package keyspace_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// operateOnElements changes a collection or a limiter that is large enough for patches, often by so
// much that it becomes a tree and later a flat value again.
func operateOnElements(v *keyspace.Handle, rng *rand.Rand) error {
	db, key := rng.IntN(2), []byte{byte('a' + rng.IntN(3))}
	n := 1
	if rng.IntN(4) == 0 {
		n = rng.IntN(120)
	}
	away := rng.IntN(3) == 0
	word := func() []byte { return fmt.Appendf(nil, "element:%d", rng.IntN(150)) }
	switch rng.IntN(7) {
	case 0:
		return v.WriteHash(db, append(key, 'h'), func(h *collection.Hash) error {
			for range n {
				if away {
					h.Delete(word())
				} else if _, err := h.Set(word(), word()); err != nil {
					return err
				}
			}
			return nil
		})
	case 1:
		return v.WriteSortedSet(db, append(key, 'z'), func(z *collection.SortedSet) error {
			for range n {
				if away {
					z.Remove(word())
				} else if _, err := z.Set(word(), float64(rng.IntN(50))); err != nil {
					return err
				}
			}
			return nil
		})
	case 2:
		return v.WriteList(db, append(key, 'q'), func(l *collection.List) error { return operateOnList(l, rng, n, away, word) })
	case 3:
		return v.WriteSet(db, append(key, 's'), func(s *collection.Set) error {
			for range n {
				if away {
					s.Remove(word())
				} else if _, err := s.Add(word()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return operateOnLarge(v, rng, db, key)
}

func operateOnList(l *collection.List, rng *rand.Rand, n int, away bool, word func() []byte) error {
	for range n {
		var err error
		switch rng.IntN(8) {
		case 0, 1:
			if away {
				l.PopFront()
			} else {
				err = l.PushFront(word())
			}
		case 2:
			if i := l.Len(); i > 0 {
				l.Set(rng.IntN(i), word())
			}
		case 3:
			if n == 1 {
				l.Remove(word(), rng.IntN(5)-2)
			}
		case 4:
			if n == 1 && away && l.Len() > 0 {
				l.Trim(rng.IntN(20), 20+rng.IntN(100))
			}
		default:
			if away {
				l.PopBack()
			} else {
				err = l.PushBack(word())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// operateOnLarge calls a limiter of many entries, slots or members.
func operateOnLarge(v *keyspace.Handle, rng *rand.Rand, db int, key []byte) error {
	quantity := int64(rng.IntN(6)) - 1
	var err error
	switch rng.IntN(3) {
	case 0:
		_, err = asks.Allow(v, db, append(key, 'l'), &slidingwindow.Call{
			Mode: slidingwindow.Log, Limit: 200, Window: 5 * time.Minute, Quantity: quantity, LogMaxEntries: 1000,
		})
	case 1:
		_, err = asks.Allow(v, db, append(key, 'b'), &slidingwindow.Call{
			Mode: slidingwindow.Buckets, Limit: 200, Window: 2 * time.Minute, Quantity: quantity, Slots: 40 + 10*rng.IntN(2),
		})
	default:
		c := &concurrency.Call{Op: concurrency.Op(rng.IntN(4) % 3), Member: fmt.Appendf(nil, "member:%d", rng.IntN(60))}
		if c.Op != concurrency.Release {
			c.Lease = time.Duration(1+rng.IntN(120)) * time.Second
		}
		if c.Op == concurrency.Acquire {
			c.Limit = 50
			if rng.IntN(20) == 0 { // rarely, so that sets change their mode
				c.Places = int64(rng.IntN(4))
			}
		}
		_, err = asks.Lease(v, db, append(key, 'm'), c)
	}
	return err
}

// operateOnKey does an operation on a whole key.
func operateOnKey(v *keyspace.Handle, rng *rand.Rand) {
	kinds := "hzqslbm"
	name := func() []byte { return []byte{byte('a' + rng.IntN(3)), kinds[rng.IntN(len(kinds))]} }
	db := rng.IntN(2)
	switch rng.IntN(10) {
	case 0:
		v.Delete(db, name())
	case 1:
		from := name()
		v.Rename(db, from, []byte{byte('a' + rng.IntN(3)), from[1]}, false)
	case 2, 3, 4, 5:
		v.Expire(db, name(), v.Now().Add(time.Duration(1+rng.IntN(40))*time.Second), 0)
	case 6, 7:
		v.Persist(db, name())
	case 8:
		_, _ = v.SetString(db, name(), []byte("a string"), keyspace.SetOptions{Expiry: v.Now().Add(5 * time.Second)})
	default:
		if rng.IntN(15) == 0 {
			v.Flush(db)
		}
	}
}

func operateOnAny(v *keyspace.Handle, rng *rand.Rand) error {
	switch rng.IntN(12) {
	case 0:
		operateOnKey(v, rng)
	case 1:
		operate(v, rng)
	default:
		if err := operateOnElements(v, rng); !errors.Is(err, limit.ErrWrongType) {
			return err
		}
	}
	return nil
}

// meaning returns all that ks holds, without those bytes of a window or a lease set that may differ
// between equal states.
func meaning(ks *keyspace.Keyspace, now limit.Instant) map[string]any {
	m := map[string]any{}
	for name, e := range all(ks) {
		switch e.Kind {
		case 16 + entry.Kind(slidingwindow.Log):
			m[name] = []any{e.Kind, e.Expiry, logEntries(e.Value)}
		case entry.OfLease(concurrency.Leases), entry.OfLease(concurrency.Places):
			m[name] = []any{e.Kind, e.Expiry, leases(e, now)}
		default:
			m[name] = e
		}
	}
	return m
}

// logEntries returns the window and every entry with its count; see slidingwindow.
func logEntries(value []byte) (entries []uint64) {
	var w []uint64
	for ; len(value) > 0; value = value[8:] {
		w = append(w, binary.LittleEndian.Uint64(value))
	}
	size, head, kept := (len(w)-3)/2, int(uint32(w[2])), int(w[2]>>32)
	entries = append(entries, w[0])
	before := w[1]
	for i := range kept {
		at := 3 + 2*((head+i)%size)
		entries = append(entries, w[at], w[at+1]-before)
		before = w[at+1]
	}
	return entries
}

// leases returns, for each holder of a lease at now, when the lease ends and the number of places.
func leases(e entry.Entry, now limit.Instant) map[string][2]int64 {
	held, places := map[string][2]int64{}, map[string]int64{}
	mode := e.Kind.LeaseMode()
	concurrency.List(mode, e.Value, now, nil, true, len(e.Value), func(name []byte, _ limit.Instant, n int64) { places[string(name)] = n })
	for i := range 90 {
		member := fmt.Appendf(nil, "member:%d", i)
		if i >= 60 {
			member = []byte{byte(i - 60)}
		}
		holds := func(at limit.Instant) bool {
			var p concurrency.Plan
			err := concurrency.Decide(mode, e.Value, e.Expiry, at, &concurrency.Call{Op: concurrency.Renew, Member: member, Lease: 1}, &p)
			return err == nil && p.Decision.Allowed()
		}
		from, to := now, e.Expiry+1
		if !holds(from) {
			continue
		}
		for to-from > 1 {
			if mid := from + (to-from)/2; holds(mid) {
				from = mid
			} else {
				to = mid
			}
		}
		held[string(member)] = [2]int64{int64(to), places[string(member)]}
	}
	return held
}

// Whenever a snapshot is taken, its entries and all later effects give the final state, for every
// kind of value. Keys expire, are made again, renamed and flushed meanwhile, and time passes
// between the end and the replay.
func TestPatchesReplay(t *testing.T) {
	effort.Alone(t)
	for seed := range uint64(effort.Steps(10, 60)) {
		ks, v, j, clock := journalled(t)
		rng := rand.New(rand.NewPCG(seed, 77))
		live := func() {
			clock.Advance(time.Duration(rng.IntN(400)) * time.Millisecond)
			v.Refresh()
			require.NoError(t, operateOnAny(v, rng))
			if rng.IntN(30) == 0 {
				ks.Sweep(1000)
			}
		}
		for range 1000 {
			live()
		}
		copied := keyspace.New(keyspace.Options{Clock: clock, Shards: 8, Databases: 2})
		since := len(j.records)
		kinds := map[entry.Kind]bool{}
		require.NoError(t, ks.Snapshot(func(db int, key []byte, e entry.Entry) {
			require.NoError(t, effect.CheckEntry(e))
			require.NoError(t, copied.Restore(db, key, e))
			kinds[e.Kind] = true
		}, func() error {
			for range rng.IntN(30) {
				live()
			}
			return nil
		}))
		for range 100 {
			live()
		}
		fresh := keyspace.New(keyspace.Options{Clock: clock, Shards: 1, Databases: 2})
		j.replay(t, copied, since)
		j.replay(t, fresh, 0)
		j.replay(t, fresh, 0) // a second replay has no effect
		want := meaning(ks, clock.Now())
		require.Equal(t, want, meaning(copied, clock.Now()), "seed %d", seed)
		require.Equal(t, want, meaning(fresh, clock.Now()), "seed %d", seed)
		copied.Close()
		fresh.Close()
	}
}
