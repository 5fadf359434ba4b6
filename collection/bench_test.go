package collection_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
)

func members(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = fmt.Appendf(nil, "member-%05d", i)
	}
	return all
}

func fillHash(n int) *collection.Hash {
	h := new(collection.Hash)
	for _, m := range members(n) {
		_, _ = h.Set(m, m)
	}
	h.ResetDelta()
	return h
}

func fillSorted(n int) *collection.SortedSet {
	s := new(collection.SortedSet)
	for i, m := range members(n) {
		_, _ = s.Set(m, float64(i))
	}
	s.ResetDelta()
	return s
}

func fillList(n int) *collection.List {
	l := new(collection.List)
	for _, m := range members(n) {
		_ = l.PushBack(m)
	}
	l.ResetDelta()
	return l
}

func fillSet(n int) *collection.Set {
	s := new(collection.Set)
	for _, m := range members(n) {
		_, _ = s.Add(m)
	}
	s.ResetDelta()
	return s
}

func bySize(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			f(b, n)
		})
	}
}

// BenchmarkHashSet measures an HSET of a token bucket: it loads the flat bytes and overwrites a
// field.
func BenchmarkHashSet(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		h, all := fillHash(n), members(n)
		flat, small := h.Flat()
		flat = append([]byte(nil), flat...)
		for i := 0; b.Loop(); i++ {
			if small {
				h.Load(flat)
			}
			_, _ = h.Set(all[i%n], all[(i+1)%n])
			h.ResetDelta()
		}
	})
}

// BenchmarkSortedSetLog measures a log of requests: it adds one element and removes the oldest.
func BenchmarkSortedSetLog(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		s, all := fillSorted(n), members(n)
		for i := n; b.Loop(); i++ {
			_, _ = s.Set(all[i%n], float64(i))
			s.RemoveRange(0, s.Search(func(_ []byte, score float64) bool { return score > float64(i-n) }))
			s.ResetDelta()
		}
	})
}

// BenchmarkSortedSetRank moves a member and looks up its rank.
func BenchmarkSortedSetRank(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		s, all := fillSorted(n), members(n)
		for i := 0; b.Loop(); i++ {
			m := all[i*7919%n]
			_, _ = s.Set(m, float64(i*104729%n)+0.5)
			_, _, _ = s.Rank(m)
			s.ResetDelta()
		}
	})
}

// BenchmarkSortedSetSearch looks up the rank of a member in the middle.
func BenchmarkSortedSetSearch(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		s, all := fillSorted(n), members(n)
		for i := 0; b.Loop(); i++ {
			_, _, _ = s.Rank(all[i*7919%n])
		}
	})
}

// BenchmarkListQueue pushes and pops.
func BenchmarkListQueue(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		l, all := fillList(n), members(n)
		for i := 0; b.Loop(); i++ {
			_ = l.PushBack(all[i%n])
			_, _ = l.PopFront()
			l.ResetDelta()
		}
	})
}

// BenchmarkSet removes a member and adds it again.
func BenchmarkSet(b *testing.B) {
	bySize(b, func(b *testing.B, n int) {
		s, all := fillSet(n), members(n)
		for i := 0; b.Loop(); i++ {
			s.Remove(all[i%n])
			_, _ = s.Add(all[i%n])
			s.ResetDelta()
		}
	})
}

// TestSmallCollectionsAllocateNothing: reading and changing a small collection does not allocate.
func TestSmallCollectionsAllocateNothing(t *testing.T) {
	h, s, l := fillHash(10), fillSorted(10), fillList(10)
	all := members(11)
	hash, sorted, list := h.AppendFlat(nil), s.AppendFlat(nil), l.AppendFlat(nil)
	i := 0
	allocations := testing.AllocsPerRun(100, func() {
		i++
		h.Load(hash)
		_, _ = h.Set(all[i%11], all[i%10])
		h.Get(all[3])
		s.Load(sorted)
		_, _ = s.Set(all[i%11], float64(i))
		s.RemoveRange(0, s.Search(func(_ []byte, score float64) bool { return score > 2 }))
		l.Load(list)
		_ = l.PushFront(all[i%11])
		_, _ = l.PopBack()
		_ = l.Delta()
	})
	require.Zero(t, allocations)
}

// TestCostIsAboutTheMemory compares Cost, which counts towards used memory, with the size on the
// heap.
func TestCostIsAboutTheMemory(t *testing.T) {
	for name, fill := range map[string]func(int) value{
		"hash":       func(n int) value { return fillHash(n) },
		"sorted set": func(n int) value { return fillSorted(n) },
		"list":       func(n int) value { return fillList(n) },
		"set":        func(n int) value { return fillSet(n) },
	} {
		for _, n := range []int{100, 10_000} {
			const copies = 20
			kept := make([]value, copies)
			before := heap()
			for i := range kept {
				kept[i] = fill(n)
			}
			each := float64(heap()-before) / copies
			cost := float64(kept[0].Cost())
			t.Logf("%s of %d: %.0f bytes for each element, %.0f as counted", name, n, each/float64(n), cost/float64(n))
			require.InEpsilon(t, each, cost, 0.45, "%s of %d elements", name, n)
			runtime.KeepAlive(kept)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
