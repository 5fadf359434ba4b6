package server_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestCollectionsAreCountedOnce: INFO and MEMORY STATS do not count a large collection twice, as a
// key and as Go's heap.
func TestCollectionsAreCountedOnce(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		inproc.HeapBytes() // collect earlier garbage first
		before, heapBefore := c.InfoNumber("used_memory"), int64(inproc.HeapBytes())
		fillHash(t, c, "large", 50_000)
		inproc.HeapBytes()
		after, heapAfter := c.InfoNumber("used_memory"), int64(inproc.HeapBytes())
		require.Greater(t, heapAfter-heapBefore, int64(2<<20), "it is in Go's heap")
		require.InDelta(t, heapAfter-heapBefore, after-before, 2<<20)
		require.Contains(t, c.Do("MEMORY", "STATS"), "total.allocated")
	})
}

// fillHash creates a hash with that many fields.
func fillHash(t *testing.T, c *inproc.Client, key string, fields int) {
	t.Helper()
	for done := 0; done < fields; {
		args := []string{"HSET", key}
		for range 500 {
			args = append(args, fmt.Sprintf("field:%d", done), strings.Repeat("v", 40))
			done++
		}
		require.Equal(t, ":500\r\n", c.Do(args...))
	}
}

// TestHeapIsReturned: after keys with much memory in Go's heap are deleted, the runtime returns it.
func TestHeapIsReturned(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		var freed atomic.Int64
		s := w.StartWith(func(o *server.Options) { o.FreeHeap = func() { freed.Add(1) } })
		c := s.Dial()
		for i := range 3 {
			fillHash(t, c, fmt.Sprint("large", i), 100_000)
		}
		require.Greater(t, s.Keyspace().InHeap(), int64(20<<20))
		w.Advance(time.Second)
		before := freed.Load() // memory of the burst of commands may have been returned
		require.Equal(t, ":3\r\n", c.Do("DEL", "large0", "large1", "large2"))
		require.Less(t, s.Keyspace().InHeap(), int64(8<<20))
		w.Advance(time.Second)
		require.Greater(t, freed.Load(), before)
	})
}

// TestMemoryOfDeletedKeysIsReturnedOnce tests that the memory of deleted keys is returned once, if
// it is much and a large share of what they had.
func TestMemoryOfDeletedKeysIsReturnedOnce(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		keys []int64
		due  []bool
	}{
		"once":                {[]int64{0, 30 * mib, 6 * mib, 6 * mib, 0}, []bool{false, false, true, false, false}},
		"little":              {[]int64{20 * mib, 5 * mib, 4 * mib}, []bool{false, false, true}},
		"a small part":        {[]int64{1000 * mib, 800 * mib, 751 * mib, 750 * mib}, []bool{false, false, false, true}},
		"by and by":           {[]int64{40 * mib, 35 * mib, 30 * mib, 25 * mib, 24 * mib}, []bool{false, false, false, false, true}},
		"again after as much": {[]int64{40 * mib, 0, 40 * mib, 0}, []bool{false, true, false, true}},
	} {
		var f server.FreedHeap
		var due []bool
		for _, keys := range c.keys {
			due = append(due, f.Due(keys))
		}
		require.Equal(t, c.due, due, name)
	}
}

// TestHeapIsReturnedOnceQuiet tests that the memory of a burst is returned after five checks,
// unless the runtime collects by itself or the memory is small.
func TestHeapIsReturnedOnceQuiet(t *testing.T) {
	const much, little = 100 << 20, 1 << 20
	for _, c := range []struct {
		name   string
		cycles []uint64
		idle   int64
		held   []int64 // at each check; 0 if not given
		due    int     // the first check at which it is due, and how often
		times  int
	}{
		{"much and quiet", []uint64{1, 1, 1, 1, 1, 1}, much, nil, 5, 1},
		{"again after as long", []uint64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, much, nil, 5, 2},
		{"little", []uint64{1, 1, 1, 1, 1, 1, 1, 1}, little, nil, -1, 0},
		{"clients have gone", []uint64{1, 1, 1, 1, 1, 1, 1}, little, []int64{0, much}, 6, 1},
		{"clients go as it is collected", []uint64{1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3}, little, []int64{much, much}, 7, 1},
		{"clients stay", []uint64{1, 1, 1, 1, 1, 1, 1, 1}, little, []int64{much, much, much, much, much, much, much, much}, -1, 0},
		{"collected meanwhile", []uint64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, much, nil, -1, 0},
	} {
		var q server.QuietHeap
		first, times := -1, 0
		for i, cycles := range c.cycles {
			held := int64(0)
			if i < len(c.held) {
				held = c.held[i]
			}
			if q.Due(cycles, c.idle, held) {
				times++
				if first < 0 {
					first = i
				}
			}
		}
		require.Equal(t, c.due, first, c.name)
		require.Equal(t, c.times, times, c.name)
	}
}
