package collection_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
)

// pinned is a large collection that can be pinned.
type pinned interface{ Pin() (unpin func()) }

// TestPinnedElementsKeepTheirBytes: the bytes that a pinned collection has returned do not
// change, whatever is done to it, until it becomes small or empty.
func TestPinnedElementsKeepTheirBytes(t *testing.T) {
	const n = 2000
	var h collection.Hash
	var l collection.List
	var s collection.Set
	var z collection.SortedSet
	name := func(i int) []byte { return []byte("name" + strconv.Itoa(i)) }
	for i := range n {
		_, err := h.Set(name(i), name(i))
		require.NoError(t, err)
		require.NoError(t, l.PushBack(name(i)))
		_, err = s.Add(name(i))
		require.NoError(t, err)
		_, err = z.Set(name(i), float64(i))
		require.NoError(t, err)
	}
	var seen [][]byte
	for field, value := range h.All() {
		seen = append(seen, field, value)
	}
	for value := range l.Range(0, n) {
		seen = append(seen, value)
	}
	for member := range s.All() {
		seen = append(seen, member)
	}
	for member := range z.Range(0, n) {
		seen = append(seen, member)
	}
	want := fmt.Sprintf("%q", seen)
	for _, c := range []pinned{&h, &l, &s, &z} {
		unpin := c.Pin()
		require.NotNil(t, unpin)
		defer unpin()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 * n {
		at, value := rng.IntN(n), []byte(strings.Repeat("x", rng.IntN(12)))
		_, err := h.Set(name(at), value)
		require.NoError(t, err)
		l.Set(at, value)
		s.Remove(name(at))
		_, err = s.Add(value)
		require.NoError(t, err)
		_, err = z.Set(name(at), rng.Float64())
		require.NoError(t, err)
	}
	require.Equal(t, want, fmt.Sprintf("%q", seen))
	for i := range n {
		h.Delete(name(i))
		l.PopFront()
		s.Remove(name(i))
		z.Remove(name(i))
		_, err := h.Set(name(n), value12)
		require.NoError(t, err)
	}
	require.Nil(t, h.Pin(), "a small one has no bytes of its own")
	require.Equal(t, want, fmt.Sprintf("%q", seen))
}

var value12 = []byte(strings.Repeat("y", 12))

// TestHashOverwritesInPlaceOnceNobodyHasPinnedIt: an unpinned hash overwrites in place, and does
// not allocate.
func TestHashOverwritesInPlaceOnceNobodyHasPinnedIt(t *testing.T) {
	var h collection.Hash
	require.Nil(t, h.Pin())
	for i := range 1000 {
		_, err := h.Set([]byte(strconv.Itoa(i)), value12)
		require.NoError(t, err)
	}
	h.ResetDelta()
	field := []byte("7")
	overwrite := func() {
		_, _ = h.Set(field, value12) // the hash has no limit
		h.ResetDelta()
	}
	overwrite()
	require.Zero(t, testing.AllocsPerRun(100, overwrite))
	first, second := h.Pin(), h.Pin()
	require.NotZero(t, testing.AllocsPerRun(100, overwrite))
	first()
	require.NotZero(t, testing.AllocsPerRun(100, overwrite))
	second()
	require.Zero(t, testing.AllocsPerRun(100, overwrite))
}
