package shared_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/shared"
)

// ledger sums its counts.
type ledger struct{ sum atomic.Int64 }

// Count implements [shared.Ledger].
func (l *ledger) Count(bytes int64) { l.sum.Add(bytes) }

// TestValueCountsUntilItsLastReferenceIsGone: the ledger counts a value that was removed until its
// last reference is released. While the value is in the store, the store counts it.
func TestValueCountsUntilItsLastReferenceIsGone(t *testing.T) {
	var l ledger
	for _, size := range []int{0, 1, 100, shared.Least, 1_000_000} {
		text := strings.Repeat("x", size)
		v := shared.New([]byte(text), 3)
		require.Equal(t, text, string(v))
		require.GreaterOrEqual(t, cap(v), size+3)
		require.GreaterOrEqual(t, shared.Size(v), int64(cap(v)))
		refs := make([]shared.Ref, 3)
		for i := range refs {
			shared.Hold(v, &l)
			refs[i] = shared.Held(v, &l)
		}
		require.True(t, shared.Busy(v))
		refs[0].Release()
		refs[0].Release()
		require.Zero(t, l.sum.Load())
		shared.Drop(v, &l)
		require.Equal(t, shared.Size(v), l.sum.Load())
		shared.ReleaseAll(refs)
		require.Zero(t, l.sum.Load())
		require.False(t, shared.Busy(v))
		shared.Hold(v, &l) // by the goroutine that has removed it
		last := shared.Held(v, &l)
		require.Equal(t, shared.Size(v), l.sum.Load())
		require.Equal(t, text, string(last.Bytes))
		last.Release()
		require.Zero(t, l.sum.Load())
	}
	require.Equal(t, "abc", shared.NewString([]byte("abc")))
	own := shared.Own([]byte("abc"), nil, 0)
	require.Equal(t, shared.RefSize+3, own.Kept())
	own.Release()
	counted := shared.Own([]byte("abc"), &l, 5)
	require.Equal(t, shared.RefSize, counted.Kept())
	counted.Release()
	counted.Release()
	require.Equal(t, int64(-5), l.sum.Load())
}

// TestReferencesOfManyGoroutines: the ledger ends at zero in any order.
func TestReferencesOfManyGoroutines(t *testing.T) {
	var l ledger
	for range 200 {
		v := shared.New(make([]byte, 100), 0)
		var all sync.WaitGroup
		for range 4 {
			shared.Hold(v, &l)
			all.Go(func() {
				r := shared.Held(v, &l)
				r.Release()
			})
		}
		all.Go(func() { shared.Drop(v, &l) })
		all.Wait()
		require.Zero(t, l.sum.Load())
	}
}

// TestValueStaysPinnedUntilTheLastUnpin: bytes with two readers stay pinned until both have called
// unpin.
func TestValueStaysPinnedUntilTheLastUnpin(t *testing.T) {
	var p shared.Pins
	require.False(t, p.Pinned())
	first, second := p.Pin(), p.Pin()
	first()
	require.True(t, p.Pinned())
	second()
	require.False(t, p.Pinned())
}
