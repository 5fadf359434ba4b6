package collection_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/collection"
)

// hashMachine has a map and the order of its fields as a model.
type hashMachine struct {
	h      *collection.Hash
	values map[string]string
	order  []string
}

func (m *hashMachine) value() value            { return m.h }
func (m *hashMachine) fresh() value            { return new(collection.Hash) }
func (m *hashMachine) check(flat []byte) error { return collection.CheckHash(flat) }

func (m *hashMachine) renew(flat []byte) {
	h := &collection.Hash{Max: m.h.Max}
	h.Load(flat)
	m.h = h
}

func (m *hashMachine) change(t *rapid.T) {
	remove := rapid.Bool().Draw(t, "remove")
	for range drawBurst(t) {
		field, v := drawElement(t), drawElement(t)
		_, known := m.values[string(field)]
		if remove {
			if len(m.order) > 0 && rapid.Bool().Draw(t, "known") {
				field = []byte(rapid.SampledFrom(m.order).Draw(t, "field"))
				known = true
			}
			require.Equal(t, known, m.h.Delete(field))
			delete(m.values, string(field))
			if known {
				m.order = slices.DeleteFunc(m.order, func(f string) bool { return f == string(field) })
			}
			continue
		}
		added, err := m.h.Set(field, v)
		if !known && m.h.Max > 0 && len(m.order) >= m.h.Max {
			require.ErrorIs(t, err, collection.ErrFull)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, !known, added)
		m.values[string(field)] = string(v)
		if added {
			m.order = append(m.order, string(field))
		}
	}
}

func (m *hashMachine) compare(t *rapid.T) {
	require.Equal(t, len(m.order), m.h.Len())
	i := 0
	for field, v := range m.h.All() {
		require.Equal(t, m.order[i], string(field))
		require.Equal(t, m.values[m.order[i]], string(v))
		i++
	}
	require.Equal(t, len(m.order), i)
	field := drawElement(t)
	got, ok := m.h.Get(field)
	want, known := m.values[string(field)]
	require.Equal(t, known, ok)
	require.Equal(t, want, string(got))
	for range m.h.All() {
		break // an iteration may end early
	}
}

// setMachine has a slice as a model.
type setMachine struct {
	s       *collection.Set
	members []string
}

func (m *setMachine) value() value            { return m.s }
func (m *setMachine) fresh() value            { return new(collection.Set) }
func (m *setMachine) check(flat []byte) error { return collection.CheckSet(flat) }

func (m *setMachine) renew(flat []byte) {
	s := &collection.Set{Max: m.s.Max}
	s.Load(flat)
	m.s = s
}

func (m *setMachine) change(t *rapid.T) {
	remove := rapid.Bool().Draw(t, "remove")
	for range drawBurst(t) {
		member := drawElement(t)
		if remove && len(m.members) > 0 && rapid.Bool().Draw(t, "known") {
			member = []byte(rapid.SampledFrom(m.members).Draw(t, "member"))
		}
		at := slices.Index(m.members, string(member))
		if remove {
			require.Equal(t, at >= 0, m.s.Remove(member))
			if at >= 0 {
				m.members = slices.Delete(m.members, at, at+1)
			}
			continue
		}
		added, err := m.s.Add(member)
		if at < 0 && m.s.Max > 0 && len(m.members) >= m.s.Max {
			require.ErrorIs(t, err, collection.ErrFull)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, at < 0, added)
		if added {
			m.members = append(m.members, string(member))
		}
	}
}

func (m *setMachine) compare(t *rapid.T) {
	require.Equal(t, len(m.members), m.s.Len())
	i := 0
	for member := range m.s.All() {
		require.Equal(t, m.members[i], string(member))
		i++
	}
	require.Equal(t, len(m.members), i)
	member := drawElement(t)
	require.Equal(t, slices.Contains(m.members, string(member)), m.s.Has(member))
	if rapid.Bool().Draw(t, "by number") { // from now on the set has an index
		numbered := make([]string, m.s.Len())
		for i := range numbered {
			numbered[i] = string(m.s.At(i))
		}
		require.ElementsMatch(t, m.members, numbered)
	}
}
