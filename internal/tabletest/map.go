// Package tabletest provides a table of Go maps, with which tests compare the table of package
// dense. Both tables have the same methods.
package tabletest

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Map is a table that keeps entries in a fixed number of Go maps, chosen by the upper bits of the
// hash. A scan iterates over the maps, since a key never moves from one map to another. The methods
// are the same as of [dense.Table].
type Map struct {
	mem   *dense.Memory
	hash  func(key []byte) uint32
	maps  [subMaps]map[string]uint32 // maps from keys to indices in slots
	slots []mapSlot                  // the entries, without gaps: the last one moves into the place of a removed one
	bytes int64
}

type mapSlot struct {
	key string
	e   entry.Entry
}

const (
	subMaps  = 64
	subShift = 32 - 6
	// slotBytes is the approximate memory of an entry in addition to its key and value: the slot,
	// its share of a map, and the runtime's rounding.
	slotBytes = 120
)

// New returns an empty table that reports its approximate memory to m. hash must be the function
// with which the caller computes the hashes of keys.
func New(m *dense.Memory, hash func(key []byte) uint32) *Map {
	return &Map{mem: m, hash: hash}
}

// Find implements the method of [dense.Table].
func (t *Map) Find(hash uint32, key []byte) (dense.Ref, entry.Kind, limit.Instant, []byte) {
	i, ok := t.maps[hash>>subShift][string(key)]
	if !ok {
		return 0, entry.None, 0, nil
	}
	e := &t.slots[i].e
	return dense.Ref(i), e.Kind, e.Expiry, e.Value
}

// Insert implements the method of [dense.Table].
func (t *Map) Insert(hash uint32, key []byte, e entry.Entry) bool {
	m := t.maps[hash>>subShift]
	if m == nil {
		m = make(map[string]uint32)
		t.maps[hash>>subShift] = m
	}
	e.Value = shared.New(e.Value, 0)
	t.slots = append(t.slots, mapSlot{string(key), e})
	m[t.slots[len(t.slots)-1].key] = uint32(len(t.slots) - 1)
	t.account(t.Cost(dense.Ref(len(t.slots) - 1)))
	return true
}

// Store implements the method of [dense.Table].
func (t *Map) Store(r dense.Ref, e entry.Entry) {
	was := t.Cost(r)
	s := &t.slots[r]
	value := s.e.Value
	if len(e.Value) > cap(value) || shared.Busy(value) {
		shared.Drop(value, t.mem)
		value = shared.New(e.Value, 0)
	} else {
		value = append(value[:0], e.Value...)
	}
	s.e = e
	s.e.Value = value
	t.account(t.Cost(r) - was)
}

// Remove implements the method of [dense.Table].
func (t *Map) Remove(r dense.Ref) {
	t.account(-t.Cost(r))
	key, last := t.slots[r].key, len(t.slots)-1
	delete(t.mapOf(key), key)
	if int(r) != last {
		t.slots[r] = t.slots[last]
		t.mapOf(t.slots[r].key)[t.slots[r].key] = uint32(r)
	}
	t.slots[last] = mapSlot{}
	t.slots = t.slots[:last]
}

func (t *Map) mapOf(key string) map[string]uint32 {
	return t.maps[t.hash([]byte(key))>>subShift]
}

// At implements the method of [dense.Table].
func (t *Map) At(r dense.Ref) ([]byte, entry.Entry) {
	return []byte(t.slots[r].key), t.slots[r].e
}

// Scan implements the method of [dense.Table].
func (t *Map) Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) uint64 {
	for seen := 0; cursor < subMaps && seen < count; cursor++ {
		for _, i := range t.maps[cursor] {
			f([]byte(t.slots[i].key), t.slots[i].e)
			seen++
		}
	}
	if cursor >= subMaps {
		return 0
	}
	return cursor
}

// Due implements the method of [dense.Table].
func (t *Map) Due(pos *uint64, budget *int, now limit.Instant) (dense.Ref, bool) {
	for ; *pos < uint64(len(t.slots)); *pos++ {
		if *budget == 0 {
			return 0, false
		}
		*budget--
		if t.slots[*pos].e.Expiry <= now {
			return dense.Ref(*pos), true
		}
	}
	*pos = 0
	return 0, false
}

// Random implements the method of [dense.Table].
func (t *Map) Random(x uint64) dense.Ref { return dense.Ref(x % uint64(len(t.slots))) }

// Cost implements the method of [dense.Table].
func (t *Map) Cost(r dense.Ref) int64 {
	s := &t.slots[r]
	return slotBytes + int64(len(s.key)+cap(s.e.Value))
}

// Len implements the method of [dense.Table].
func (t *Map) Len() int { return len(t.slots) }

// Free implements the method of [dense.Table].
func (t *Map) Free() {
	t.account(-t.bytes)
	t.maps, t.slots = [subMaps]map[string]uint32{}, nil
}

func (t *Map) account(n int64) {
	t.bytes += n
	t.mem.Add(n)
}
