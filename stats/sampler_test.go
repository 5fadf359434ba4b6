package stats_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/stats"
)

// TestSkipPrefersNoPlace: each call is counted with the same probability, whatever the rhythm of
// calls is.
func TestSkipPrefersNoPlace(t *testing.T) {
	const every, calls = 16, 1 << 20
	rate := stats.OneIn(every)
	for _, rhythm := range []int{2, 5, 16, 32} {
		s := stats.NewSampler()
		places := make([]float64, rhythm)
		for at := s.Skip(rate); at < calls; at += s.Skip(rate) + 1 {
			places[at%rhythm]++
		}
		want := float64(calls) / every / float64(rhythm)
		for place, n := range places {
			require.InDelta(t, want, n, 6*math.Sqrt(want), "place %d of %d", place, rhythm)
		}
	}
	s := stats.NewSampler()
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Skip(rate) }))
}
