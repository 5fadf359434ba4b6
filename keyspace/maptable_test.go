package keyspace

import (
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// mapTable is the storage that the other is compared with. It keeps entries in a fixed number of Go maps by the upper bits of the
// hash, which is what a scan walks over: a key never moves from one map to
// another.
type mapTable struct {
	mem   *Memory
	hash  func(key []byte) uint32
	maps  [subMaps]map[string]uint32 // index into slots
	slots []mapSlot                  // dense: the last one fills a gap
	bytes int64
}

type mapSlot struct {
	key string
	e   Entry
}

const (
	subMaps  = 64
	subShift = 32 - 6
	// slotBytes is about what an entry takes beside key and value: the slot, its
	// share of a map, and what the runtime rounds up.
	slotBytes = 120
)

func newMapTable(m *Memory, hash func(key []byte) uint32) table {
	return &mapTable{mem: m, hash: hash}
}

func (t *mapTable) find(hash uint32, key []byte) (ref, Kind, limit.Instant, []byte) {
	i, ok := t.maps[hash>>subShift][string(key)]
	if !ok {
		return 0, None, 0, nil
	}
	e := &t.slots[i].e
	return ref(i), e.Kind, e.Expiry, e.Value
}

func (t *mapTable) insert(hash uint32, key []byte, e Entry) bool {
	m := t.maps[hash>>subShift]
	if m == nil {
		m = make(map[string]uint32)
		t.maps[hash>>subShift] = m
	}
	e.Value = shared.New(e.Value, 0)
	t.slots = append(t.slots, mapSlot{string(key), e})
	m[t.slots[len(t.slots)-1].key] = uint32(len(t.slots) - 1)
	t.account(t.cost(ref(len(t.slots) - 1)))
	return true
}

func (t *mapTable) store(r ref, e Entry) {
	was := t.cost(r)
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
	t.account(t.cost(r) - was)
}

func (t *mapTable) remove(r ref) {
	t.account(-t.cost(r))
	key, last := t.slots[r].key, len(t.slots)-1
	delete(t.mapOf(key), key)
	if int(r) != last {
		t.slots[r] = t.slots[last]
		t.mapOf(t.slots[r].key)[t.slots[r].key] = uint32(r)
	}
	t.slots[last] = mapSlot{}
	t.slots = t.slots[:last]
}

func (t *mapTable) mapOf(key string) map[string]uint32 {
	return t.maps[t.hash([]byte(key))>>subShift]
}

func (t *mapTable) at(r ref) ([]byte, Entry) {
	return []byte(t.slots[r].key), t.slots[r].e
}

func (t *mapTable) scan(cursor uint64, count int, f func(key []byte, e Entry)) uint64 {
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

func (t *mapTable) due(pos *uint64, budget *int, now limit.Instant) (ref, bool) {
	for ; *pos < uint64(len(t.slots)); *pos++ {
		if *budget == 0 {
			return 0, false
		}
		*budget--
		if t.slots[*pos].e.Expiry <= now {
			return ref(*pos), true
		}
	}
	*pos = 0
	return 0, false
}

func (t *mapTable) random(x uint64) ref { return ref(x % uint64(len(t.slots))) }

func (t *mapTable) cost(r ref) int64 {
	s := &t.slots[r]
	return slotBytes + int64(len(s.key)+cap(s.e.Value))
}

func (t *mapTable) len() int { return len(t.slots) }

func (t *mapTable) free() {
	t.account(-t.bytes)
	t.maps, t.slots = [subMaps]map[string]uint32{}, nil
}

func (t *mapTable) account(n int64) {
	t.bytes += n
	t.mem.Add(n)
}
