package collection_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/collection"
)

// listMachine has a slice as a model.
type listMachine struct {
	l   *collection.List
	all []string
}

func (m *listMachine) value() value            { return m.l }
func (m *listMachine) fresh() value            { return new(collection.List) }
func (m *listMachine) check(flat []byte) error { return collection.CheckList(flat) }

func (m *listMachine) renew(flat []byte) {
	l := &collection.List{Max: m.l.Max}
	l.Load(flat)
	m.l = l
}

func (m *listMachine) change(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 0, 1:
		m.push(t)
	case 2, 3:
		m.pop(t)
	case 4:
		from := rapid.IntRange(-1, len(m.all)+1).Draw(t, "from")
		to := rapid.IntRange(-1, len(m.all)+1).Draw(t, "to")
		m.l.Trim(from, to)
		if from = max(from, 0); from < to {
			m.all = slices.Clone(m.all[from:max(from, min(to, len(m.all)))])
		} else {
			m.all = nil
		}
	case 5:
		m.remove(t)
	case 6:
		i, v := rapid.IntRange(-1, len(m.all)).Draw(t, "index"), drawElement(t)
		ok := m.l.Set(i, v)
		require.Equal(t, i >= 0 && i < len(m.all), ok)
		if ok {
			m.all[i] = string(v)
		}
	}
}

func (m *listMachine) push(t *rapid.T) {
	front := rapid.Bool().Draw(t, "front")
	for range drawBurst(t) {
		v := drawElement(t)
		push := m.l.PushBack
		if front {
			push = m.l.PushFront
		}
		err := push(v)
		if m.l.Max > 0 && len(m.all) >= m.l.Max {
			require.ErrorIs(t, err, collection.ErrFull)
			continue
		}
		require.NoError(t, err)
		if front {
			m.all = slices.Insert(m.all, 0, string(v))
		} else {
			m.all = append(m.all, string(v))
		}
	}
}

func (m *listMachine) pop(t *rapid.T) {
	front := rapid.Bool().Draw(t, "front")
	for range drawBurst(t) {
		pop, at := m.l.PopBack, len(m.all)-1
		if front {
			pop, at = m.l.PopFront, 0
		}
		got, ok := pop()
		require.Equal(t, len(m.all) > 0, ok)
		if ok {
			require.Equal(t, m.all[at], string(got))
			m.all = slices.Delete(m.all, at, at+1)
		}
	}
}

func (m *listMachine) remove(t *rapid.T) {
	v := drawElement(t)
	if len(m.all) > 0 && rapid.Bool().Draw(t, "known") {
		v = []byte(rapid.SampledFrom(m.all).Draw(t, "value"))
	}
	count := rapid.IntRange(-3, 3).Draw(t, "count")
	left := slices.Clone(m.all)
	if count < 0 {
		slices.Reverse(left)
	}
	removed := 0
	left = slices.DeleteFunc(left, func(e string) bool {
		if e != string(v) || count != 0 && removed >= max(count, -count) {
			return false
		}
		removed++
		return true
	})
	if count < 0 {
		slices.Reverse(left)
	}
	require.Equal(t, removed, m.l.Remove(v, count))
	m.all = left
}

func (m *listMachine) compare(t *rapid.T) {
	require.Equal(t, len(m.all), m.l.Len())
	require.True(t, m.l.Whole())
	from := rapid.IntRange(-1, len(m.all)+1).Draw(t, "read from")
	to := rapid.IntRange(-1, len(m.all)+1).Draw(t, "read to")
	if rapid.Bool().Draw(t, "read all") {
		from, to = 0, len(m.all)
	}
	var want, got []string
	if from < to {
		want = m.all[min(max(from, 0), len(m.all)):min(to, len(m.all))]
	}
	for v := range m.l.Range(from, to) {
		got = append(got, string(v))
	}
	require.True(t, slices.Equal(want, got))
	i := rapid.IntRange(-1, len(m.all)).Draw(t, "index")
	v, ok := m.l.At(i)
	require.Equal(t, i >= 0 && i < len(m.all), ok)
	if ok {
		require.Equal(t, m.all[i], string(v))
	}
}
