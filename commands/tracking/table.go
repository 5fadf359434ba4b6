package tracking

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// readTable is the invalidation table: for each key that tracking clients have read since the key
// last changed, it has the IDs of these clients. All databases share the table, as in Redis. It is
// divided into stripes with a lock each. Only records of more than maxRecord bytes have a pointer
// of their own, so a full table costs the garbage collector little. Any goroutine may use the
// table.
type readTable struct {
	stripes [tableStripes]tableStripe
	hash    func(key []byte) uint64
	alive   func(id int64) bool

	keys, items, memory atomic.Int64
	// removed increases when entries are removed. If it is the same before and after a read, the
	// client that was registered before the read is still registered.
	removed atomic.Uint64
	victim  atomic.Uint32 // index of the stripe at which the latest eviction began
	read    atomic.Uint64 // number of the latest read
}

const tableStripes = 64

// tableStripe is the part of the table that one lock guards.
type tableStripe struct {
	mu      sync.Mutex
	records records // the records of the stripe's keys; guarded by mu
	// items is the number of readers in all records, and cost the memory of the records in bytes.
	// Both are guarded by mu.
	items, cost int64
}

// purgeFrom is the minimum of purgeAt, the number of readers of a key at which disconnected readers
// are removed from the record of the key.
const purgeFrom = 64

func (t *readTable) init(alive func(id int64) bool) {
	seed := maphash.MakeSeed()
	t.hash, t.alive = func(key []byte) uint64 { return maphash.Bytes(seed, key) }, alive
}

func (t *readTable) stripe(hash uint64) *tableStripe { return &t.stripes[hash%tableStripes] }

// add registers the client id as a reader of key, for the read with the number read. fresh is true
// if the client was not registered before. If key has many readers, add may remove disconnected
// ones.
func (t *readTable) add(key []byte, id int64, read uint64) (fresh bool) {
	hash := t.hash(key)
	s := t.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, is := s.records.find(hash, key)
	if !is {
		cost := s.records.add(hash, key, id, read)
		t.keys.Add(1)
		t.grow(s, 1, cost)
		return true
	}
	fresh, items, cost := s.records.join(at, id, read, t.alive)
	if fresh {
		t.grow(s, items, cost)
	}
	return fresh
}

// grow adds items to the number of readers and cost to the memory, both of s and of the table. s is
// locked.
func (t *readTable) grow(s *tableStripe, items, cost int64) {
	s.items += items
	s.cost += cost
	t.items.Add(items)
	t.memory.Add(cost)
}

// take removes the entry of key and returns it; nil if there is none. When the caller has sent the
// invalidations, it has to call forget.
func (t *readTable) take(key []byte) *readers {
	hash := t.hash(key)
	s := t.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, is := s.records.find(hash, key); is {
		return t.remove(s, at)
	}
	return nil
}

// beyond reports whether the table has more than most keys. A most of 0 means that there is no
// maximum.
func (t *readTable) beyond(most int64) bool { return most > 0 && t.keys.Load() > most }

// draw removes a random entry and returns it. It skips entries in which the read with the number
// spare has registered the latest reader; a spare of 0 skips none. draw returns nil if it finds no
// other entry; it tries only a few entries of each stripe. When the caller has sent the
// invalidations, it has to call forget.
func (t *readTable) draw(spare uint64) *readers {
	from := t.victim.Add(1)
	for i := range uint32(tableStripes) {
		if r := t.drawFrom(&t.stripes[(from+i)%tableStripes], spare); r != nil {
			return r
		}
	}
	return nil
}

func (t *readTable) drawFrom(s *tableStripe, spare uint64) *readers {
	const tries = 4
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min(tries, s.records.n) {
		at := s.records.nth(rand.IntN(s.records.n))
		if spare == 0 || s.records.at(at).read() != spare {
			return t.remove(s, at)
		}
	}
	return nil
}

// remove removes the entry at the place at of s, which is locked, and returns it. The memory of the
// entry counts as used until forget is called.
func (t *readTable) remove(s *tableStripe, at place) *readers {
	r := s.records.take(at)
	s.items -= int64(r.len())
	s.cost -= r.cost
	t.removed.Add(1)
	t.keys.Add(-1)
	t.items.Add(-int64(r.len()))
	return r
}

// forget subtracts the memory of r, an entry that was removed from the table.
func (t *readTable) forget(r *readers) { t.memory.Add(-r.cost) }

// clear removes all entries. It does not visit each entry, because all shards of the store may be
// locked meanwhile.
func (t *readTable) clear() {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		t.keys.Add(-int64(s.records.n))
		t.grow(s, -s.items, -s.cost)
		s.records = records{}
		s.mu.Unlock()
	}
	t.removed.Add(1)
}

// sweep removes the readers for which keep returns false, and the entries that have no other
// readers.
func (t *readTable) sweep(keep func(id int64) bool) {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		s.records.backward(func(at place) {
			gone, saved, empty := s.records.purge(at, keep)
			t.grow(s, -gone, -saved)
			if empty {
				t.forget(t.remove(s, at))
			}
		})
		s.mu.Unlock()
	}
}

// merge adds the clients of other to r and forgets other. Both are entries of the same key that
// were removed from the table.
func (t *readTable) merge(r, other *readers) {
	for _, id := range other.ids {
		if r.add(id) {
			r.cost += idSize
			t.memory.Add(idSize)
		}
	}
	t.forget(other)
}
