package stats_test

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/stats"
)

// TestSketchEstimatesWithin20Percent: the estimate holds over all sizes and many streams. An item
// counts once however often it is added, and the merged parts of a stream have the same estimate as
// the whole.
func TestSketchEstimatesWithin20Percent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 5, 10, 100, 500, 700, 1000, 10_000, 300_000} {
		for range 20 {
			var whole, left, right stats.Sketch
			for range n {
				hash := r.Uint64()
				whole.Add(hash)
				whole.Add(hash)
				if hash&1 == 0 {
					left.Add(hash)
				} else {
					right.Add(hash)
				}
			}
			left.Merge(&right)
			require.Equal(t, whole, left)
			require.InDelta(t, n, whole.Estimate(), 0.25*float64(n)+0.5, "of %d", n)
		}
	}
	var s stats.Sketch
	s.Add(0)
	s.Add(^uint64(0))
	require.EqualValues(t, 2, s.Estimate())
	require.Len(t, s, 256)
}

func TestSketchTakesHashesOfKeys(t *testing.T) {
	var s stats.Sketch
	seed := maphash.MakeSeed()
	for i := range 5000 {
		s.Add(maphash.Comparable(seed, i))
	}
	require.InEpsilon(t, 5000, s.Estimate(), 0.3)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Add(1); s.Estimate() }))
}

func TestGroupOfAKey(t *testing.T) {
	for _, row := range []struct{ key, delimiter, group string }{
		{"api:acme", ":", "api"},
		{"api:acme:x", ":", "api"},
		{":x", ":", ""},
		{"api", ":", stats.NoGroup},
		{"", ":", stats.NoGroup},
		{"a--b", "--", "a"},
		{"a-b", "--", stats.NoGroup},
		{"a:b", "", stats.NoGroup},
		{"\xff:b", ":", "\xff"},
		{string(make([]byte, 64)) + ":", ":", string(make([]byte, 64))},
		{string(make([]byte, 65)) + ":", ":", stats.OtherGroups},
	} {
		require.Equal(t, row.group, stats.GroupName([]byte(row.key), row.delimiter), "%q", row)
	}
}
