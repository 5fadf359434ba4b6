package object_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/object"
)

// sum is a ledger.
type sum int64

func (s *sum) Count(bytes int64) { *s += sum(bytes) }

// large returns a hash that is too large for a value.
func large(t *testing.T) *collection.Hash {
	h := object.New(entry.Hash).(*collection.Hash)
	object.Bound(h, 10_000, false)
	h.Load(nil)
	for i := range 1000 {
		_, err := h.Set(fmt.Append(nil, i), []byte("value"))
		require.NoError(t, err)
	}
	_, small := h.Flat()
	require.False(t, small)
	return h
}

func TestTreesCountWhatTheyTake(t *testing.T) {
	var trees object.Trees
	var taken sum
	var values [3][]byte
	var last sum
	for i := range values {
		h := large(t)
		values[i] = trees.Add(nil, &taken, h)
		require.Len(t, values[i], object.TreeValue)
		require.Greater(t, int64(taken-last), h.Cost())
		require.Equal(t, int64(taken-last), trees.At(values[i]).Cost)
		last = taken
	}
	h := trees.At(values[1]).Object.(*collection.Hash)
	trees.Weigh(&taken, values[1])
	require.Equal(t, last, taken, "nothing has changed")
	_, err := h.Set([]byte("new"), []byte("value"))
	require.NoError(t, err)
	trees.Weigh(&taken, values[1])
	require.Greater(t, taken, last)

	trees.Remove(&taken, values[1])
	require.Equal(t, 2*last/3, taken)
	require.Equal(t, values[1], trees.Add(nil, &taken, large(t)), "a number is used again")
	require.Equal(t, last, taken)
	trees.Clear(&taken)
	require.Zero(t, taken)
}

func TestObjectsOfAllKinds(t *testing.T) {
	for k := entry.Hash; k <= entry.Set; k++ {
		require.True(t, k.IsCollection())
		require.Less(t, k.Ordinal(), object.Kinds)
		o := object.New(k)
		o.Load(nil)
		require.Zero(t, o.Len())
	}
	require.Panics(t, func() { object.New(entry.String) })
}
