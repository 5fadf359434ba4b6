package chaos_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// worstExcess returns by how many calls a history of admitted calls exceeds its limit in the
// worst span: between any call and any return there are at most burst + 1 + time * rate calls that
// were both made and answered in it. Nanoseconds, and units per second. It is 0 or less if no span
// has too many.
func worstExcess(calls []hotCall, burst, rate float64) float64 {
	begins := make([]int64, len(calls))
	for i, c := range calls {
		begins[i] = c.called
	}
	slices.Sort(begins)
	spans := newSpans(begins, rate)
	slices.SortFunc(calls, func(a, b hotCall) int { return cmp.Compare(a.returned, b.returned) })
	worst := 0.0
	for _, c := range calls {
		own, _ := slices.BinarySearch(begins, c.called+1)
		spans.count(own)
		past, _ := slices.BinarySearch(begins, c.returned+1)
		worst = max(worst, spans.most(past)-float64(c.returned)*rate/1e9-(burst+1))
	}
	return worst
}

// spans has, for each begin of a span, how many calls there are in it so far, plus begin * rate: a
// tree of maxima, where a call counts for all begins up to its own.
type spans struct {
	size int
	max  []float64
	add  []float64 // for all below
}

func newSpans(begins []int64, rate float64) *spans {
	s := &spans{size: 1}
	for s.size < len(begins) {
		s.size *= 2
	}
	s.max, s.add = make([]float64, 2*s.size), make([]float64, 2*s.size)
	for i := range s.size {
		s.max[s.size+i] = math.Inf(-1)
		if i < len(begins) {
			s.max[s.size+i] = float64(begins[i]) * rate / 1e9
		}
	}
	for i := s.size - 1; i > 0; i-- {
		s.max[i] = max(s.max[2*i], s.max[2*i+1])
	}
	return s
}

// count adds a call to the first n begins.
func (s *spans) count(n int) { s.increase(1, 0, s.size, n) }

func (s *spans) increase(node, from, to, n int) {
	switch {
	case n >= to:
		s.max[node]++
		s.add[node]++
	case n > from:
		s.increase(2*node, from, (from+to)/2, n)
		s.increase(2*node+1, (from+to)/2, to, n)
		s.max[node] = max(s.max[2*node], s.max[2*node+1]) + s.add[node]
	}
}

// most is the largest of the first n.
func (s *spans) most(n int) float64 { return s.mostBelow(1, 0, s.size, n) }

func (s *spans) mostBelow(node, from, to, n int) float64 {
	switch {
	case n >= to:
		return s.max[node]
	case n <= from:
		return math.Inf(-1)
	}
	half := (from + to) / 2
	return max(s.mostBelow(2*node, from, half, n), s.mostBelow(2*node+1, half, to, n)) + s.add[node]
}

// TestHistoryCheckNoticesWhatIsTooMuch gives the check histories of which some admit too much.
func TestHistoryCheckNoticesWhatIsTooMuch(t *testing.T) {
	history := func(n int, apart int64) (calls []hotCall) {
		for i := range n {
			at := int64(i) * apart
			calls = append(calls, hotCall{called: at, returned: at + 1000})
		}
		return calls
	}
	const burst, rate = 10, 1000 // a unit each millisecond
	slow := append(history(1000, 1_000_000), hotCall{called: 5, returned: 2_000_000_000})
	require.LessOrEqual(t, worstExcess(slow, burst, rate), 0.0, "one that took long counts where it was answered")
	require.LessOrEqual(t, worstExcess(history(1000, 1_000_000), burst, rate), 0.0, "as many as the rate")
	require.LessOrEqual(t, worstExcess(history(11, 1), burst, rate), 0.0, "the burst and one at once")
	require.InDelta(t, 1, worstExcess(history(12, 0), burst, rate), 0.01, "one more")
	require.Positive(t, worstExcess(history(1000, 900_000), burst, rate), "a tenth too fast")
	later := append(history(11, 1), history(11, 1)...) // the burst twice at once, as after a loss of the state
	require.InDelta(t, 11, worstExcess(later, burst, rate), 0.1)
}
