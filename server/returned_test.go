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
