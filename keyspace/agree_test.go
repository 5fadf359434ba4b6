package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestStoragesAgree plays the same random commands of every kind on keyspaces over each storage and
// compares all replies. So a family that changes its bytes in place gives the same results.
func TestStoragesAgree(t *testing.T) {
	effort.Alone(t)
	clock := clocktest.New(t0)
	var names []string
	var handles []*keyspace.Handle
	for _, name := range keyspace.Storages() {
		ks := keyspace.New(keyspace.Options{Clock: clock}.With(name))
		t.Cleanup(ks.Close)
		names = append(names, name)
		handles = append(handles, ks.NewHandle())
	}
	rng := rand.New(rand.NewPCG(11, 12))
	for step := range effort.Steps(30_000, 600_000) {
		if rng.IntN(3) == 0 {
			clock.Advance(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
		}
		do := randomCommand(t, rng)
		want := ""
		for i, v := range handles {
			v.Refresh()
			got := do(v)
			if i == 0 {
				want = got
			} else if got != want {
				require.Equal(t, want, got, "step %d: %s and %s", step, names[0], names[i])
			}
		}
	}
	for _, v := range handles[1:] {
		require.Equal(t, handles[0].Keyspace().Stats().Kinds, v.Keyspace().Stats().Kinds)
		require.Equal(t, scanAll(handles[0], 0, 10), scanAll(v, 0, 10))
	}
}

// randomCommand draws a command; it returns its answer as text, and the expiry of
// the key afterwards.
func randomCommand(t testing.TB, rng *rand.Rand) func(v *keyspace.Handle) string {
	kind := rng.IntN(15)
	k := fmt.Append(nil, "key:", kind, ":", rng.IntN(30))
	if rng.IntN(50) == 0 { // sometimes a command on a key of another family
		k = fmt.Append(nil, "key:", rng.IntN(15), ":", rng.IntN(30))
	}
	var do func(v *keyspace.Handle) (any, error)
	switch op := rng.IntN(40); {
	case op == 0:
		do = func(v *keyspace.Handle) (any, error) { return v.Delete(0, k), nil }
	case op == 1:
		in := time.Duration(rng.Int64N(int64(3 * time.Second)))
		do = func(v *keyspace.Handle) (any, error) { return v.Expire(0, k, v.Now().Add(in), 0), nil }
	case op == 2:
		do = func(v *keyspace.Handle) (any, error) { return v.Persist(0, k), nil }
	case op == 3:
		to := fmt.Append(nil, "key:", kind, ":", rng.IntN(30))
		do = func(v *keyspace.Handle) (any, error) {
			renamed, found := v.Rename(0, k, to, false)
			return fmt.Sprint(renamed, found), nil
		}
	case op == 4:
		value := make([]byte, rng.IntN(6000))
		do = func(v *keyspace.Handle) (any, error) {
			return nil, v.Put(0, append(k, 's'), entry.String, value, entry.NoExpiry)
		}
	case op == 5 && rng.IntN(500) == 0:
		do = func(v *keyspace.Handle) (any, error) { v.Flush(0); return nil, nil }
	case kind == 10:
		do = randomString(rng, k)
	case kind > 10:
		do = randomCollection(rng, kind, k)
	default:
		do = randomLimiter(t, rng, kind, k)
	}
	return func(v *keyspace.Handle) string {
		answer, err := do(v)
		at, has, exists := v.Expiry(0, k)
		return fmt.Sprint(answer, err, at, has, exists)
	}
}

func randomLimiter(t testing.TB, rng *rand.Rand, kind int, k []byte) func(v *keyspace.Handle) (any, error) {
	quantity := rng.Int64N(12) - 2
	switch {
	case kind == 0:
		q, err := gcra.NewQuota(rng.Int64N(40), 1+rng.Int64N(100), 10)
		require.NoError(t, err)
		return func(v *keyspace.Handle) (any, error) { return answer(asks.Throttle(v, 0, k, &q, quantity)) }
	case kind < 5:
		c := windowIn(slidingwindow.Mode(kind), quantity)
		c.Limit, c.Window = 20_000, time.Duration(1+rng.IntN(2))*10*time.Minute
		if kind == int(slidingwindow.Buckets) {
			c.Slots = 2 + rng.IntN(3)*400
		}
		return func(v *keyspace.Handle) (any, error) { return answer(asks.Allow(v, 0, k, c)) }
	case kind < 9:
		c := bucket(tokenbucket.Mode(kind-4), quantity)
		c.Init = 10 - rng.Int64N(2)*5
		return func(v *keyspace.Handle) (any, error) { return answer(asks.Acquire(v, 0, k, c)) }
	}
	c := &concurrency.Call{
		Op: concurrency.Op(rng.IntN(4) % 3), Member: fmt.Appendf(nil, "member:%0*d", rng.IntN(200), rng.IntN(400)),
		Limit: 300, Lease: time.Duration(1 + rng.Int64N(int64(20*time.Minute))),
	}
	if c.Op == concurrency.Release {
		c.Lease = 0
	}
	if c.Op != concurrency.Acquire {
		c.Limit = 0
	}
	return func(v *keyspace.Handle) (any, error) { return answer(asks.Lease(v, 0, k, c)) }
}

// randomString changes a plain string or a cell in a random way.
func randomString(rng *rand.Rand, k []byte) func(v *keyspace.Handle) (any, error) {
	value := make([]byte, rng.IntN(70))
	switch rng.IntN(4) {
	case 0:
		o := keyspace.SetOptions{Expiry: entry.NoExpiry, KeepTTL: rng.IntN(2) == 0, IfAbsent: rng.IntN(3) == 0}
		return func(v *keyspace.Handle) (any, error) { return v.SetString(0, k, value, o) }
	case 1:
		by := rng.Int64N(2000) - 1000
		return func(v *keyspace.Handle) (any, error) { return v.AddInt(0, k, by) }
	case 2:
		return func(v *keyspace.Handle) (any, error) {
			return nil, v.Put(0, k, entry.String, []byte("17"), entry.NoExpiry)
		}
	}
	return func(v *keyspace.Handle) (any, error) {
		s, found, err := v.AppendString(nil, 0, k)
		return fmt.Sprint(string(s), found), err
	}
}

// randomCollection changes or reads a collection, which sometimes grows beyond what is stored in a
// table.
func randomCollection(rng *rand.Rand, kind int, k []byte) func(v *keyspace.Handle) (any, error) {
	n, away := 1+rng.IntN(3)*rng.IntN(40), rng.IntN(5) < 2
	seed := rng.Uint64()
	words := func() func() []byte {
		own := rand.New(rand.NewPCG(seed, 1))
		return func() []byte { return fmt.Appendf(nil, "element:%d", own.IntN(200)) }
	}
	switch kind {
	case 11:
		return func(v *keyspace.Handle) (any, error) { return changeHash(v, k, n, away, words()) }
	case 12:
		return func(v *keyspace.Handle) (any, error) { return changeSortedSet(v, k, n, away, words()) }
	case 13:
		return func(v *keyspace.Handle) (any, error) { return changeList(v, k, n, away, words()) }
	}
	return func(v *keyspace.Handle) (any, error) { return changeSet(v, k, n, away, words()) }
}

func changeHash(v *keyspace.Handle, k []byte, n int, away bool, word func() []byte) (out any, err error) {
	var all []string
	err = v.WriteHash(0, k, func(h *collection.Hash) error {
		for range n {
			if away {
				h.Delete(word())
			} else if _, err := h.Set(word(), word()); err != nil {
				return err
			}
		}
		for f, value := range h.All() {
			all = append(all, string(f), string(value))
		}
		return nil
	})
	return all, err
}

func changeSortedSet(v *keyspace.Handle, k []byte, n int, away bool, word func() []byte) (out any, err error) {
	var all []string
	err = v.WriteSortedSet(0, k, func(z *collection.SortedSet) error {
		for i := range n {
			if away {
				z.Remove(word())
			} else if _, err := z.Set(word(), float64(i)); err != nil {
				return err
			}
		}
		for m, score := range z.Range(0, z.Len()) {
			all = append(all, fmt.Sprint(string(m), score))
		}
		return nil
	})
	return all, err
}

func changeList(v *keyspace.Handle, k []byte, n int, away bool, word func() []byte) (out any, err error) {
	var all []string
	err = v.WriteList(0, k, func(l *collection.List) error {
		for i := range n {
			if away {
				l.PopFront()
			} else if err := l.PushBack(word()); err != nil {
				return err
			} else if i%8 == 0 {
				l.PopBack()
			}
		}
		for value := range l.Range(0, l.Len()) {
			all = append(all, string(value))
		}
		return nil
	})
	return all, err
}

func changeSet(v *keyspace.Handle, k []byte, n int, away bool, word func() []byte) (out any, err error) {
	var all []string
	err = v.WriteSet(0, k, func(s *collection.Set) error {
		for range n {
			if away {
				s.Remove(word())
			} else if _, err := s.Add(word()); err != nil {
				return err
			}
		}
		for m := range s.All() {
			all = append(all, string(m))
		}
		return nil
	})
	return all, err
}

func answer(d limit.Decision, err error) (any, error) { return d, err }
