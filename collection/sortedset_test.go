package collection_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/collection"
)

type scored struct {
	member string
	score  float64
}

// sortedMachine has a sorted slice as a model.
type sortedMachine struct {
	s   *collection.SortedSet
	all []scored
}

func (m *sortedMachine) value() value            { return m.s }
func (m *sortedMachine) fresh() value            { return new(collection.SortedSet) }
func (m *sortedMachine) check(flat []byte) error { return collection.CheckSortedSet(flat) }

func (m *sortedMachine) renew(flat []byte) {
	s := &collection.SortedSet{Max: m.s.Max}
	s.Load(flat)
	m.s = s
}

func drawScore(t *rapid.T) float64 {
	if rapid.Bool().Draw(t, "any score") {
		f := rapid.Float64().Draw(t, "score")
		if !math.IsNaN(f) {
			return f
		}
	}
	return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 2, -1.5, math.Inf(1), math.Inf(-1)}).Draw(t, "score")
}

func (m *sortedMachine) index(member []byte) int {
	return slices.IndexFunc(m.all, func(e scored) bool { return e.member == string(member) })
}

func (m *sortedMachine) change(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		from := rapid.IntRange(-2, len(m.all)+2).Draw(t, "from")
		to := rapid.IntRange(-2, len(m.all)+2).Draw(t, "to")
		n := m.s.RemoveRange(from, to)
		from, to = max(from, 0), min(to, len(m.all))
		require.Equal(t, max(to-from, 0), n)
		if n > 0 {
			m.all = slices.Delete(m.all, from, to)
		}
	case 1:
		for range drawBurst(t) {
			member := drawElement(t)
			at := m.index(member)
			require.Equal(t, at >= 0, m.s.Remove(member))
			if at >= 0 {
				m.all = slices.Delete(m.all, at, at+1)
			}
		}
	default:
		for range drawBurst(t) {
			m.set(t, drawElement(t), drawScore(t))
		}
	}
}

func (m *sortedMachine) set(t *rapid.T, member []byte, score float64) {
	at := m.index(member)
	added, err := m.s.Set(member, score)
	if at < 0 && m.s.Max > 0 && len(m.all) >= m.s.Max {
		require.ErrorIs(t, err, collection.ErrFull)
		return
	}
	require.NoError(t, err)
	require.Equal(t, at < 0, added)
	if at >= 0 {
		if m.all[at].score == score {
			return
		}
		m.all = slices.Delete(m.all, at, at+1)
	}
	m.all = append(m.all, scored{string(member), score})
	slices.SortFunc(m.all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
	})
}

func (m *sortedMachine) compare(t *rapid.T) {
	require.Equal(t, len(m.all), m.s.Len())
	from := rapid.IntRange(-1, len(m.all)+1).Draw(t, "read from")
	to := rapid.IntRange(-1, len(m.all)+1).Draw(t, "read to")
	if rapid.Bool().Draw(t, "read all") {
		from, to = 0, len(m.all)
	}
	var want, up, down []scored
	if from < to {
		want = append(want, m.all[max(from, 0):min(to, len(m.all))]...)
	}
	for member, score := range m.s.Range(from, to) {
		up = append(up, scored{string(member), score})
	}
	for member, score := range m.s.RangeDown(from, to) {
		down = append(down, scored{string(member), score})
	}
	slices.Reverse(down)
	requireSame(t, want, up)
	requireSame(t, want, down)
	for i, e := range m.all {
		rank, score, ok := m.s.Rank([]byte(e.member))
		require.True(t, ok)
		require.Equal(t, i, rank)
		require.Equal(t, math.Float64bits(e.score), math.Float64bits(score))
		member, _, ok := m.s.At(i)
		require.True(t, ok)
		require.Equal(t, e.member, string(member))
	}
	bound := drawScore(t)
	require.Equal(t, slices.IndexFunc(append(m.all, scored{"", math.NaN()}), func(e scored) bool { return !(e.score < bound) }),
		m.s.Search(func(_ []byte, score float64) bool { return score >= bound }))
	place := min(max(from, 0), len(m.all))
	for place < min(to, len(m.all)) && m.all[place].score <= bound {
		place++
	}
	require.Equal(t, place, min(m.s.SearchIn(from, to, func(_ []byte, score float64) bool { return score > bound }), len(m.all)))
	_, _, ok := m.s.Rank([]byte("no member"))
	require.False(t, ok)
	_, _, ok = m.s.At(len(m.all))
	require.False(t, ok)
}

// requireSame compares scores by their bits: 0 is not -0.
func requireSame(t *rapid.T, want, got []scored) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].member, got[i].member)
		require.Equal(t, math.Float64bits(want[i].score), math.Float64bits(got[i].score))
	}
}
