package idempotency

import (
	"encoding/binary"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Plan is a change of the records of one key. It belongs to the caller and may be reused. It has no
// reference to the records or to the token.
type Plan struct {
	// Forgotten is the number of calls that are forgotten because the key remembers too many.
	// Shortest is the minimum time for which any of them was remembered.
	Forgotten uint32
	Shortest  time.Duration

	grows   bool
	inPlace bool // whether there is a section, whose length stays as it is
	fresh   bool // whether there is no section yet
	drop    uint32
	added   []byte // the records to add in their stored form
	seed    uint64
	used    uint32 // number of slots that are in use after the change
	size    uint32 // capacity after the change, in slots
}

// Decide plans the change of records, the section of a key, at now. It forgets calls whose time has
// passed and, unless c is nil, adds the record r of the call c. records is nil if the key remembers
// no call. The stored record gets its fingerprint from c and ends c.TTL after now, so r.Print and
// r.Until are ignored. Afterwards [Plan.Empty] reports whether the key has no records left.
func (p *Plan) Decide(records []byte, now limit.Instant, c *Call, r Record) {
	p.added = p.added[:0]
	if c == nil {
		p.decide(records, now, 0, nil, 0)
		return
	}
	seed := c.Seed
	if records != nil {
		seed = Seed(records)
	}
	r.Until, r.Print = now.Add(c.TTL), c.Print
	p.added = r.append(p.added, c.Hash(seed))
	p.decide(records, now, 1, c, seed)
}

// DecideAll is Decide for any number of records, which must have their prints and ends. c has the
// bounds. If records is nil, the new section gets the given seed.
func (p *Plan) DecideAll(records []byte, now limit.Instant, c *Call, seed uint64, added []Added) {
	p.added = p.added[:0]
	cut := max(0, len(added)-int(c.Max))
	added = added[cut:]
	for i := range added {
		p.added = added[i].Record.append(p.added, added[i].Hash)
	}
	p.decide(records, now, uint32(len(added)), c, seed)
	if cut > 0 {
		p.Forgotten, p.Shortest = p.Forgotten+uint32(cut), 0
	}
}

// decide plans to add the n records in p.added. c has the bounds; with a nil c no call is forgotten
// before its time.
func (p *Plan) decide(records []byte, now limit.Instant, n uint32, c *Call, seed uint64) {
	p.fresh, p.drop, p.Forgotten, p.seed = records == nil, 0, 0, seed
	s := section{}
	if !p.fresh {
		s = open(records)
	}
	calls, head := s.calls, uint32(0)
	for calls > 0 {
		slot := s.slot(s.at(head))
		end := until(slot)
		if end > now {
			if c == nil || calls+n <= c.Max {
				break
			}
			kept := max(0, c.TTL-end.Sub(now))
			if p.Forgotten++; p.Forgotten == 1 || kept < p.Shortest {
				p.Shortest = kept
			}
		}
		head += width(slot)
		p.drop++
		calls--
	}
	p.used = s.used - head + uint32(len(p.added)/recordSize)
	p.size = sizeFor(p.used, s.size)
	p.grows, p.inPlace = p.size > s.size, !p.fresh && p.size == s.size
}

// sizeFor returns the capacity of a section with n slots in use, whose capacity was size. It grows
// by a half of n, or by a quarter if the section has an index, and shrinks if less than a quarter would
// be in use.
func sizeFor(n, size uint32) uint32 {
	switch {
	case n <= size && (size <= 8 || n >= size/4):
		return size
	case n <= 2:
		return n
	case n <= plainCap:
		return n + n/2
	}
	return n + n/4
}

// Empty reports whether no record is left after the change.
func (p *Plan) Empty() bool { return p.used == 0 }

// InPlace reports whether the key had a section of records, whose length stays as it is.
func (p *Plan) InPlace() bool { return p.inPlace }

// Grows reports whether the records take more memory after the change.
func (p *Plan) Grows() bool { return p.grows }

// Apply returns the value with the state of the limiter and the changed records. value is the value
// on which the plan was decided, and its section is in records; nil if the key remembered no call.
// state is the new state. If state is the beginning of value, and the section keeps its length,
// Apply changes value in place and returns it. Otherwise it writes to the memory of dst, or to new
// memory if dst is too small; dst must overlap neither value nor state.
func (p *Plan) Apply(value, records, state, dst []byte) []byte {
	s := section{seed: p.seed}
	if !p.fresh {
		s = open(records)
	}
	if p.inPlace && len(state)+len(records) == len(value) && (len(state) == 0 || &state[0] == &value[0]) {
		p.change(&s)
		return value
	}
	return p.relay(&s, state, dst)
}

// change applies the plan to s in place.
func (p *Plan) change(s *section) {
	for range p.drop {
		s.drop()
	}
	s.putAll(p.added)
	s.save()
}

// relay returns a value with state and the changed records of s, in other memory than s.
func (p *Plan) relay(s *section, state, dst []byte) []byte {
	if p.inPlace {
		dst, moved := move(s, state, dst)
		p.change(&moved)
		return dst
	}
	return relay(s, p.drop, p.added, p.size, state, dst)
}

func sized(dst []byte, n int) []byte {
	if cap(dst) < n {
		return make([]byte, n)
	}
	return dst[:n]
}

// move returns a value with state and a copy of s, in other memory than s, and that copy.
func move(s *section, state, dst []byte) (value []byte, moved section) {
	dst = sized(dst, len(state)+lengthOf(s.size))
	at := copy(dst, state)
	at += copy(dst[at:], s.slots)
	at += copy(dst[at:], s.index)
	copy(dst[at:], s.footer)
	return dst, open(dst[len(state):])
}

// relay returns a value with state and a section of the given capacity, which has the records of s
// without the oldest drop records, followed by the stored records in add.
func relay(s *section, drop uint32, add []byte, size uint32, state, dst []byte) []byte {
	n := len(state) + lengthOf(size)
	dst = sized(dst, n)
	copy(dst, state)
	from := uint32(0)
	for range drop {
		from += width(s.slot(s.at(from)))
	}
	written := len(state) + int(s.used-from)*recordSize + len(add)
	clear(dst[written:]) // unused slots are cleared, because they are stored and replicated, too
	footer := dst[n-footerSize:]
	binary.LittleEndian.PutUint32(footer[24:], size)
	to := open(dst[len(state):])
	to.seed, to.first = s.seed, s.first+from
	for from < s.used {
		position := s.at(from)
		w := width(s.slot(position))
		record := s.slot(position)
		if w == 2 {
			var both [2 * recordSize]byte
			copy(both[:], record)
			copy(both[recordSize:], s.slot(s.at(from+1)))
			record = both[:]
		}
		to.put(record)
		from += w
	}
	to.putAll(add)
	to.save()
	return dst
}
