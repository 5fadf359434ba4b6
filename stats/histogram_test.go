package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramBucketsAreContiguous(t *testing.T) {
	require.Zero(t, bucketOf(-1))
	require.Zero(t, bucketOf(0))
	require.Equal(t, bucketCount-1, bucketOf(math.MaxInt64))
	for i := range bucketCount {
		end := bucketEnd(i)
		require.Equal(t, i, bucketOf(end-1), "the last of bucket %d", i)
		require.Equal(t, min(i+1, bucketCount-1), bucketOf(end), "the first beyond bucket %d", i)
		if i > 0 {
			width := end - bucketEnd(i-1)
			require.LessOrEqual(t, stepsPerOctave*width, bucketEnd(i-1), "the width of bucket %d", i)
		}
	}
}

// TestHistogramAgreesWithSortedDurations compares a histogram with a sorted list.
func TestHistogramAgreesWithSortedDurations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []time.Duration
	var sum time.Duration
	for range 20_000 {
		d := time.Duration(math.Exp(random.Float64() * 23)) // 1 ns to 9.7 s
		h.Add(d, 1)
		all, sum = append(all, d), sum+d
	}
	slices.Sort(all)
	var got Distribution
	got.Add(&h)
	require.EqualValues(t, len(all), got.Calls)
	require.Equal(t, sum, got.Sum)
	require.GreaterOrEqual(t, got.Max(), all[len(all)-1])
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		require.Greater(t, got.Quantile(q), want, "q %v", q)
		require.LessOrEqual(t, got.Quantile(q), max(64, want+want/stepsPerOctave+1), "q %v", q)
	}
	for limit := time.Duration(64); limit <= 1<<34; limit *= 2 {
		at, _ := slices.BinarySearch(all, limit)
		require.EqualValues(t, at, got.Below(limit), "below %v", limit)
	}
}

func TestHistogramCountsWithWeights(t *testing.T) {
	var h Histogram
	h.Add(time.Microsecond, 16)
	h.Add(time.Millisecond, 1)
	var before, after Distribution
	before.Add(&h)
	require.EqualValues(t, 17, before.Calls)
	require.Equal(t, 1016*time.Microsecond, before.Sum)

	h.Add(time.Second, 2)
	after.Add(&h)
	after.Sub(&before)
	require.EqualValues(t, 2, after.Calls)
	require.Equal(t, 2*time.Second, after.Sum)
	require.Greater(t, after.Quantile(0), time.Second)

	h.Reset()
	var empty Distribution
	empty.Add(&h)
	require.Equal(t, Distribution{}, empty)
	require.Zero(t, empty.Quantile(0.5))
	require.Zero(t, empty.Max())

	h.Add(1, 1)
	var fresh Distribution
	fresh.Add(&h)
	fresh.Sub(&before)
	require.EqualValues(t, 1, fresh.Calls, "after a reset nothing is taken away")
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Add(time.Millisecond, 1) }))
}
