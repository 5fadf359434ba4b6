package registry_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
)

// shared is a store that another server changes, too.
type shared struct {
	memory
	registry *registry.Registry
	// others has the changes of the other server that come before the next SetStrings, one for each.
	others []func()
	away   error // of Refresh
	behind bool  // the registry has not observed all
}

func (s *shared) Removes() bool { return true }

func (s *shared) Refresh() (limit.Instant, error) {
	if s.away != nil {
		return 0, s.away
	}
	if s.behind {
		s.behind = false
		s.registry.ObserveAll(func(yield func(key, value []byte) bool) {
			for key, value := range s.records {
				if !yield([]byte(key), []byte(value)) {
					return
				}
			}
		})
	}
	return s.memory.Refresh()
}

func (s *shared) SetStrings(pairs [][]byte, need registry.Need) error {
	if len(s.others) > 0 {
		s.others[0]()
		s.others, s.behind = s.others[1:], true
	}
	if s.behind {
		return registry.ErrStale
	}
	for i := 0; i < len(pairs); i += 2 {
		if len(pairs[i+1]) == 0 {
			delete(s.records, string(pairs[i]))
		} else {
			s.records[string(pairs[i])] = string(pairs[i+1])
		}
	}
	s.need = need
	return nil
}

func (s *shared) Delete(keys ...[]byte) error {
	var pairs [][]byte
	for _, key := range keys {
		pairs = append(pairs, key, nil)
	}
	return s.SetStrings(pairs, registry.Frees)
}

func mainEntry(t testing.TB, name, words string) *policy.Entry {
	return &policy.Entry{Kind: policy.Main, Policy: name, Limits: limits(t, words), Until: limit.MaxInstant}
}

// TestChangesOfAnotherServerComeFirst: a change that finds records which were not observed is planned again on them.
func TestChangesOfAnotherServerComeFirst(t *testing.T) {
	r := registry.New(registry.Options{})
	s := &shared{memory: memory{records: map[string]string{}}, registry: r}
	theirs := &shared{memory: memory{records: s.records}, registry: registry.New(registry.Options{})}
	other := func(name string) func() {
		return func() {
			theirs.behind = true
			require.NoError(t, theirs.registry.Update(theirs, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
				return []registry.Edit{registry.Set(mainEntry(t, name, "SW 2 60"))}, nil
			}))
		}
	}
	s.others = []func(){other("a"), other("b")}
	var seen []int
	err := r.Update(s, registry.Author{}, func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		n := 0
		b.Each("", func(*policy.Entry) bool { n++; return true })
		seen = append(seen, n)
		return []registry.Edit{registry.Set(mainEntry(t, "mine", "SW 1 60"))}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, seen, "each plan sees the changes before it")
	require.Equal(t, s.entries(), entriesOf(r))
	require.Len(t, s.entries(), 3)
	require.Len(t, r.Changes(registry.Which{Count: 9}), 3)
	require.EqualValues(t, 3, r.Changes(registry.Which{Count: 1})[0].ID)

	s.others = make([]func(), 200)
	for i := range s.others {
		s.others[i] = func() {}
	}
	err = r.Update(s, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
		return []registry.Edit{registry.Delete(mainEntry(t, "mine", "SW 1 60"))}, nil
	})
	require.ErrorIs(t, err, registry.ErrStale, "at some time it gives up")
	require.Equal(t, s.entries(), entriesOf(r))
}

// TestNoChangeWhileTheStoreIsAway: the plan is not asked, because it would see old entries.
func TestNoChangeWhileTheStoreIsAway(t *testing.T) {
	r := registry.New(registry.Options{})
	s := &shared{memory: memory{records: map[string]string{}}, registry: r, away: errors.New("away")}
	err := r.Update(s, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
		t.Error("planned")
		return nil, nil
	})
	require.ErrorIs(t, err, s.away)
	r.Tidy(s, true)
	require.Empty(t, s.records)
}

// TestChangeOfAnotherServerIsWhole: the table never has a part of a change.
func TestChangeOfAnotherServerIsWhole(t *testing.T) {
	r := registry.New(registry.Options{})
	a, b := mainEntry(t, "a", "SW 1 60"), mainEntry(t, "b", "SW 1 60")
	observe := func(deleted bool, entries ...*policy.Entry) {
		r.ObserveChange(func(yield func(k, v []byte) bool) {
			for _, e := range entries {
				value := e.AppendValue(nil)
				if deleted {
					value = nil
				}
				if !yield(e.AppendKey(nil), value) {
					return
				}
			}
		})
	}
	observe(false, a, b)
	require.NotNil(t, r.Table().Policy([]byte("a")))
	require.NotNil(t, r.Table().Policy([]byte("b")))
	observe(false, func() []*policy.Entry {
		many := make([]*policy.Entry, 300)
		for i := range many {
			many[i] = mainEntry(t, fmt.Sprint("c", i), "SW 1 60")
		}
		return many
	}()...)
	require.NotNil(t, r.Table().Policy([]byte("c299")))
	observe(true, a)
	require.Nil(t, r.Table().Policy([]byte("a")))
	require.NoError(t, r.Fault())
}

// TestAllRecordsTakeThePlaceOfOthers: entries that a store has lost are gone, and the table never has a part of the others.
func TestAllRecordsTakeThePlaceOfOthers(t *testing.T) {
	r := registry.New(registry.Options{})
	old := mainEntry(t, "old", "SW 1 60")
	r.Observe(old.AppendKey(nil), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: old.AppendValue(nil)})
	require.NotNil(t, r.Table().Policy([]byte("old")))
	records := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		e := mainEntry(t, name, "SW 1 60")
		records[string(e.AppendKey(nil))] = string(e.AppendValue(nil))
	}
	key, value := []byte{}, []byte{}
	r.ObserveAll(func(yield func(k, v []byte) bool) {
		for k, v := range records {
			require.NotNil(t, r.Table().Policy([]byte("old")))
			key, value = append(key[:0], k...), append(value[:0], v...) // the memory is used again
			if !yield(key, value) {
				return
			}
		}
	})
	require.Equal(t, maps.Clone(records), entriesOf(r))
}

// entriesOf returns the keys and values of the records of all entries, which describe them
// completely.
func entriesOf(r *registry.Registry) map[string]string {
	all := map[string]string{}
	r.Table().Each("", func(e *policy.Entry) bool {
		all[string(e.AppendKey(nil))] = string(e.AppendValue(nil))
		return true
	})
	return all
}
