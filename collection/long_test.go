package collection_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/shared"
)

// sum is a ledger.
type sum struct{ bytes int64 }

// Count implements [shared.Ledger].
func (s *sum) Count(bytes int64) { s.bytes += bytes }

// reader refers to elements as replies do.
type reader struct {
	ledger sum
	held   map[*byte]shared.Ref
	sizes  map[*byte]int64
	texts  map[*byte]string
}

// read adds a reference to an element, if it is long.
func (r *reader) read(v []byte) {
	at := unsafe.SliceData(v)
	if len(v) < shared.Least || r.sizes[at] > 0 {
		return
	}
	shared.Hold(v, &r.ledger)
	r.held[at], r.sizes[at], r.texts[at] = shared.Held(v, &r.ledger), shared.Size(v), string(v)
}

// release drops the element with the least text.
func (r *reader) release() {
	var least *byte
	for at := range r.held {
		if least == nil || r.texts[at] < r.texts[least] {
			least = at
		}
	}
	ref := r.held[least]
	ref.Release()
	delete(r.held, least)
	delete(r.sizes, least)
	delete(r.texts, least)
}

// check compares the ledger with the elements that are referred to but no longer in the
// collection, and compares their bytes with the original ones.
func (r *reader) check(t *testing.T, there [][]byte) {
	t.Helper()
	gone := int64(0)
	for _, size := range r.sizes {
		gone += size
	}
	for _, v := range there {
		if len(v) >= shared.Least {
			gone -= r.sizes[unsafe.SliceData(v)]
		}
	}
	require.Equal(t, gone, r.ledger.bytes)
	for at, ref := range r.held {
		require.Equal(t, r.texts[at], string(ref.Bytes))
	}
}

// TestLongElementsThatAreReadCountOnceGone: in collections of every kind, elements that replies
// refer to keep their bytes. They count from the change on that removes them, whichever that is.
func TestLongElementsThatAreReadCountOnceGone(t *testing.T) {
	type kind struct {
		change func(rng *rand.Rand, v []byte)
		all    func() [][]byte
		drop   func()
	}
	kinds := map[string]func(l shared.Ledger) kind{
		"list": func(ledger shared.Ledger) kind {
			l := new(collection.List)
			l.SetLedger(ledger)
			all := func() [][]byte { return slices.Collect(l.Range(0, l.Len())) }
			return kind{func(rng *rand.Rand, v []byte) {
				switch rng.IntN(6) {
				case 0:
					l.Remove(v, rng.IntN(5)-2)
				case 1:
					l.PopFront()
				case 2:
					l.Set(rng.IntN(l.Len()+1), v)
				case 3:
					require.NoError(t, l.PushFront(v))
				case 4:
					require.NoError(t, l.PushBack(v))
				case 5:
					l.Trim(rng.IntN(2), l.Len()-rng.IntN(2))
				}
			}, all, l.Drop}
		},
		"hash": func(ledger shared.Ledger) kind {
			h := new(collection.Hash)
			h.SetLedger(ledger)
			all := func() (all [][]byte) {
				for field, v := range h.All() {
					all = append(all, field, v)
				}
				return all
			}
			return kind{func(rng *rand.Rand, v []byte) {
				if rng.IntN(3) == 0 {
					h.Delete(v)
					return
				}
				_, err := h.Set(v, bytes.Repeat([]byte("v"), rng.IntN(2*shared.Least)))
				require.NoError(t, err)
			}, all, h.Drop}
		},
		"set": func(ledger shared.Ledger) kind {
			s := new(collection.Set)
			s.SetLedger(ledger)
			all := func() [][]byte { return slices.Collect(s.All()) }
			return kind{func(rng *rand.Rand, v []byte) {
				if rng.IntN(3) == 0 {
					s.Remove(v)
					return
				}
				_, err := s.Add(v)
				require.NoError(t, err)
			}, all, s.Drop}
		},
		"sorted set": func(ledger shared.Ledger) kind {
			s := new(collection.SortedSet)
			s.SetLedger(ledger)
			all := func() (all [][]byte) {
				for v := range s.Range(0, s.Len()) {
					all = append(all, v)
				}
				return all
			}
			return kind{func(rng *rand.Rand, v []byte) {
				switch rng.IntN(6) {
				case 0:
					s.Remove(v)
				case 1:
					s.RemoveRange(0, 1)
				default:
					_, err := s.Set(v, float64(rng.IntN(3)))
					require.NoError(t, err)
				}
			}, all, s.Drop}
		},
	}
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			r := &reader{held: map[*byte]shared.Ref{}, sizes: map[*byte]int64{}, texts: map[*byte]string{}}
			k := make(&r.ledger)
			for range 1000 {
				letter := byte('a' + rng.IntN(20))
				k.change(rng, bytes.Repeat([]byte{letter}, []int{3, 100, shared.Least + int(letter)}[rng.IntN(3)]))
				all := k.all()
				r.check(t, all)
				if len(all) > 0 {
					r.read(all[rng.IntN(len(all))])
				}
				if len(r.held) > 10 {
					r.release()
				}
			}
			k.drop()
			r.check(t, nil)
			for len(r.held) > 0 {
				r.release()
				r.check(t, nil)
			}
			require.Zero(t, r.ledger.bytes)
		})
	}
}

// TestRemoveOfAListCopiesNoElement: the remaining elements are not copied. The delta has the
// elements that move, which are those of the shorter side.
func TestRemoveOfAListCopiesNoElement(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 128<<10)
	for at := range 21 {
		l := new(collection.List)
		for i := range 20 {
			if i == at {
				require.NoError(t, l.PushBack([]byte("short")))
			}
			require.NoError(t, l.PushBack(long))
		}
		if at == 20 {
			require.NoError(t, l.PushBack([]byte("short")))
		}
		l.ResetDelta()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, 1, l.Remove([]byte("short"), 0))
		runtime.ReadMemStats(&after)
		most := min(at, 20-at)*len(long) + 64<<10
		require.Less(t, len(l.Delta()), most)
		// With the race detector, the memory of the delta is allocated twice.
		require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 2*most, "with %d elements before it", at)
		require.Equal(t, 20, l.Len())
	}
}
