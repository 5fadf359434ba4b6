package collection_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/shared"
)

// TestCopiedIsWhatRepliesDoNotReferTo: Copied is the sum of the short elements, whatever was
// added, replaced and removed before.
func TestCopiedIsWhatRepliesDoNotReferTo(t *testing.T) {
	var h collection.Hash
	var s collection.Set
	var z collection.SortedSet
	var l collection.List
	const n, short, overhead = 2000, 100, 16
	text := func(i, size int) []byte { return []byte(fmt.Sprintf("%05d", i) + strings.Repeat("x", size-5)) }
	for i := range n {
		size := short
		if i%100 == 0 {
			size = shared.Least + i
		}
		v := text(i, size)
		_, err := h.Set([]byte(fmt.Sprint(i)), v)
		require.NoError(t, err)
		_, err = s.Add(v)
		require.NoError(t, err)
		_, err = z.Set(v, float64(i))
		require.NoError(t, err)
		require.NoError(t, l.PushBack(v))
	}
	for name, c := range map[string]interface{ Copied() int }{"hash": &h, "set": &s, "sorted set": &z, "list": &l} {
		require.Greater(t, c.Copied(), n*99/100*short-1, name)
		require.Less(t, c.Copied(), n*(short+overhead)+n/100*shared.RefSize, name)
		require.Greater(t, c.Copied(), n*99/100*short+n/100*shared.RefSize-1, name)
	}
	for i := range n { // long elements become short, and the others are removed
		if i%100 == 0 {
			_, err := h.Set([]byte(fmt.Sprint(i)), text(i, short))
			require.NoError(t, err)
			require.True(t, l.Set(i, text(i, short)))
			continue
		}
		require.True(t, h.Delete([]byte(fmt.Sprint(i))))
		require.True(t, s.Remove(text(i, short)))
		require.True(t, z.Remove(text(i, short)))
	}
	require.InDelta(t, n/100*short, h.Copied(), n/100*overhead)
	require.InDelta(t, n/100*shared.RefSize, s.Copied(), n/100*overhead)
	require.InDelta(t, n/100*shared.RefSize, z.Copied(), n/100*overhead)
	require.InDelta(t, n*short, l.Copied(), n*overhead)
	l.Trim(0, 0)
	require.Zero(t, l.Copied())
}
