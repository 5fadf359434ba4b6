package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/process"
)

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
		var f process.FreedHeap
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
		var q process.QuietHeap
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

// TestSmallHeapsGrowBySixteenMegabytes tests by how many percent a heap grows between two collections, and that small
// changes are left out.
func TestSmallHeapsGrowBySixteenMegabytes(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live, set []int64
	}{
		{[]int64{0, 1 * mib, 2 * mib}, []int64{50, 800}},
		{[]int64{4 * mib, 4*mib + 1000, 5 * mib, 5*mib + 1000, 3 * mib}, []int64{50, 400, 533}},
		{[]int64{16 * mib, 31 * mib, 32 * mib, 33 * mib, 1 << 40, 20 * mib}, []int64{50, 100, 51, 50, 80}},
		{[]int64{30 * mib, 32 * mib}, []int64{50}},
	} {
		var set []int64
		h := process.NewHeap(process.HeapOptions{Percent: func(percent int) int {
			set = append(set, int64(percent))
			return 0
		}})
		for _, live := range c.live {
			h.SetPaceFor(live)
		}
		require.Equal(t, c.set, set)
	}
	process.NewHeap(process.HeapOptions{}).SetPace() // without Percent it does nothing
}
