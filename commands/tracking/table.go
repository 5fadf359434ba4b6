package tracking

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// readTable is the invalidation table: for each key that tracking clients have read
// since it last changed, who they are. All databases share it, as in Redis. It is
// divided over locks of its own, each held for one key at a time.
type readTable struct {
	stripes [tableStripes]tableStripe
	seed    maphash.Seed
	alive   func(id int64) bool

	keys, items, memory atomic.Int64
	// removed counts what was taken out. Who has registered and finds it unchanged
	// behind the read is still registered.
	removed atomic.Uint64
	victim  atomic.Uint32 // where the next eviction begins
	read    atomic.Uint64 // the number of the latest read
}

const tableStripes = 64

// tableStripe is the part of the table under one lock.
type tableStripe struct {
	mu   sync.Mutex
	keys map[string]*readers // guarded by mu
	list []*readers          // guarded by mu: the same, to draw one from
	// items is how many readers these have, and cost what they take. Guarded by mu.
	items, cost int64
	_           [8]byte
}

// readers is who has read one key. Clients are known by their ids, so that the table
// keeps none of them alive.
type readers struct {
	key     string
	at      int // in the list of its stripe
	first   int64
	few     []int64
	many    map[int64]struct{} // in the place of few, if there are
	purgeAt int
	cost    int64
	read    uint64 // by which the latest of them was registered
}

const (
	fewReaders = 16
	// readersCost and readerCost are about what an entry, beside its key, and a client in
	// it take.
	readersCost = 192
	readerCost  = 32
)

func (t *readTable) init(alive func(id int64) bool) { t.seed, t.alive = maphash.MakeSeed(), alive }

func (t *readTable) stripe(key []byte) *tableStripe {
	return &t.stripes[maphash.Bytes(t.seed, key)%tableStripes]
}

// add registers a client for key, by the read of that number, and reports whether it was
// not.
func (t *readTable) add(key []byte, id int64, read uint64) (fresh bool) {
	s := t.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.keys[string(key)]
	if r == nil {
		r = &readers{key: string(key), at: len(s.list), first: id, purgeAt: 4 * fewReaders, cost: int64(readersCost + len(key)), read: read}
		if s.keys == nil {
			s.keys = make(map[string]*readers)
		}
		s.keys[r.key] = r
		s.list = append(s.list, r)
		t.keys.Add(1)
		t.grow(s, 1, r.cost)
		return true
	}
	if !r.add(id) {
		return false
	}
	r.read = read
	grown := 1
	if r.len() >= r.purgeAt {
		grown -= r.purge(t.alive)
		r.purgeAt = max(2*r.len(), 4*fewReaders)
	}
	t.grow(s, int64(grown), int64(grown)*readerCost)
	r.cost += int64(grown) * readerCost
	return true
}

// grow counts readers, and what they take, in s, which is locked.
func (t *readTable) grow(s *tableStripe, items, cost int64) {
	s.items += items
	s.cost += cost
	t.items.Add(items)
	t.memory.Add(cost)
}

// take removes an entry and returns it; nil if there is none.
func (t *readTable) take(key []byte) *readers {
	s := t.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.keys[string(key)]
	if r != nil {
		t.remove(s, r)
	}
	return r
}

// beyond reports whether there are more keys than most, of which 0 is no bound.
func (t *readTable) beyond(most int64) bool { return most > 0 && t.keys.Load() > most }

// draw removes any entry and returns it; nil if there seems to be none but such as the
// read of that number has registered. No read has the number 0.
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
	for range min(tries, len(s.list)) {
		if r := s.list[rand.IntN(len(s.list))]; spare == 0 || r.read != spare {
			t.remove(s, r)
			return r
		}
	}
	return nil
}

// remove takes r out of s, which is locked. Its memory counts until it is forgotten.
func (t *readTable) remove(s *tableStripe, r *readers) {
	delete(s.keys, r.key)
	last := len(s.list) - 1
	s.list[r.at] = s.list[last]
	s.list[r.at].at = r.at
	s.list[last] = nil
	s.list = s.list[:last]
	if last == 0 { // a map never shrinks
		s.keys, s.list = nil, nil
	}
	s.items -= int64(r.len())
	s.cost -= r.cost
	t.removed.Add(1)
	t.keys.Add(-1)
	t.items.Add(-int64(r.len()))
}

// forget counts the memory of what take or draw has returned as free.
func (t *readTable) forget(r *readers) { t.memory.Add(-r.cost) }

// clear empties the table. It looks at no entry: all shards of the store may be locked.
func (t *readTable) clear() {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		t.keys.Add(-int64(len(s.list)))
		t.grow(s, -s.items, -s.cost)
		s.keys, s.list = nil, nil
		s.mu.Unlock()
	}
	t.removed.Add(1)
}

// sweep takes out those for whom keep does not say so, and the keys that nobody else has
// read.
func (t *readTable) sweep(keep func(id int64) bool) {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		for at := len(s.list) - 1; at >= 0; at-- { // remove puts one from behind in its place
			r := s.list[at]
			gone := int64(r.purge(keep))
			r.cost -= gone * readerCost
			t.grow(s, -gone, -gone*readerCost)
			if r.len() == 0 {
				t.remove(s, r)
				t.forget(r)
			}
		}
		s.mu.Unlock()
	}
}

// merge makes who else, which has been taken out, has read the same key readers of r.
func (t *readTable) merge(r, other *readers) {
	other.each(func(id int64) {
		if r.add(id) {
			r.cost += readerCost
			t.memory.Add(readerCost)
		}
	})
	t.forget(other)
}

// len is how many clients there are.
func (r *readers) len() int {
	n := len(r.few) + len(r.many)
	if r.first != 0 {
		n++
	}
	return n
}

// add adds a client and reports whether it was not there.
func (r *readers) add(id int64) bool {
	if r.first == id {
		return false
	}
	if _, is := r.many[id]; is {
		return false
	}
	for _, other := range r.few {
		if other == id {
			return false
		}
	}
	switch {
	case r.first == 0:
		r.first = id
	case r.many != nil:
		r.many[id] = struct{}{}
	case len(r.few) < fewReaders:
		r.few = append(r.few, id)
	default:
		r.many = make(map[int64]struct{}, 2*fewReaders)
		for _, other := range r.few {
			r.many[other] = struct{}{}
		}
		r.many[id] = struct{}{}
		r.few = nil
	}
	return true
}

// drop takes a client out.
func (r *readers) drop(id int64) {
	r.purge(func(other int64) bool { return other != id })
}

// purge keeps only those for whom keep says so, and returns how many went.
func (r *readers) purge(keep func(id int64) bool) (gone int) {
	before := r.len()
	if r.first != 0 && !keep(r.first) {
		r.first = 0
	}
	few := r.few[:0]
	for _, id := range r.few {
		if keep(id) {
			few = append(few, id)
		}
	}
	r.few = few
	for id := range r.many {
		if !keep(id) {
			delete(r.many, id)
		}
	}
	return before - r.len()
}

// each calls f for every client.
func (r *readers) each(f func(id int64)) {
	if r.first != 0 {
		f(r.first)
	}
	for _, id := range r.few {
		f(id)
	}
	for id := range r.many {
		f(id)
	}
}
