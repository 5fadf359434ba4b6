package idempotency

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/cellserver/cellserver/limit"
)

// The records of a key form a section at the end of its value:
//
//	cap slots of 28 bytes, a ring that begins at head
//	an index of 4 bytes for each position, if cap is above 32
//	 8 bytes  seed of the hash
//	 4 bytes  number of the first slot of the ring, counted since the key had its first record
//	 4 bytes  head, the position of the first slot in the ring
//	 4 bytes  number of slots in use
//	 4 bytes  number of calls
//	 4 bytes  cap
//
// The index is a hash table with linear probing. A position has the number of a slot plus one, or 0.
const (
	footerSize = 28
	// plainCap is the maximum number of slots without an index.
	plainCap = 32
	// maxCap is the maximum number of slots: the slots of MaxCalls records of two slots, and the
	// room that growing adds.
	maxCap = 2*MaxCalls + 2*MaxCalls/4 + 2
)

// ErrCorrupt says that bytes are not the value of a key that remembers calls, or not its delta.
var ErrCorrupt = errors.New("bytes are not a limiter that remembers calls")

// section is a decoded section. Its slices refer to the value.
type section struct {
	slots, index      []byte
	footer            []byte
	seed              uint64
	first, head       uint32
	used, calls, size uint32 // size is the capacity in slots; used and calls are numbers of slots and of calls
}

// indexSize returns the number of positions in the index of a ring of n slots. It is a power of two,
// and at least a quarter of the positions is free.
func indexSize(n uint32) int {
	if n <= plainCap {
		return 0
	}
	return 1 << bits.Len32(n+n/3)
}

// lengthOf returns the length in bytes of a section of n slots.
func lengthOf(n uint32) int { return int(n)*recordSize + 4*indexSize(n) + footerSize }

// Split returns the state of the limiter and the section of records in value, which [Check] must
// have accepted.
func Split(value []byte) (state, records []byte) {
	n := len(value) - lengthOf(binary.LittleEndian.Uint32(value[len(value)-4:]))
	return value[:n:n], value[n:]
}

// open decodes the bytes of a section.
func open(b []byte) section {
	f := b[len(b)-footerSize:]
	s := section{
		footer: f,
		seed:   binary.LittleEndian.Uint64(f),
		first:  binary.LittleEndian.Uint32(f[8:]),
		head:   binary.LittleEndian.Uint32(f[12:]),
		used:   binary.LittleEndian.Uint32(f[16:]),
		calls:  binary.LittleEndian.Uint32(f[20:]),
		size:   binary.LittleEndian.Uint32(f[24:]),
	}
	n := int(s.size) * recordSize
	s.slots, s.index = b[:n:n], b[n:len(b)-footerSize]
	return s
}

// save writes the numbers of s into its footer.
func (s *section) save() {
	binary.LittleEndian.PutUint64(s.footer, s.seed)
	for i, n := range [...]uint32{s.first, s.head, s.used, s.calls, s.size} {
		binary.LittleEndian.PutUint32(s.footer[8+4*i:], n)
	}
}

// slot returns the slot at a position of the ring.
func (s *section) slot(position uint32) []byte {
	return s.slots[int(position)*recordSize : int(position+1)*recordSize]
}

// at returns the position in the ring of the slot that is i slots after the first one. i is at most
// the capacity.
func (s *section) at(i uint32) uint32 {
	if p := s.head + i; p < s.size {
		return p
	}
	return s.head + i - s.size
}

// record returns the record at a position of the ring.
func (s *section) record(position uint32) Record {
	next := position + 1
	if next == s.size {
		next = 0
	}
	return read(s.slot(position), s.slot(next))
}

// find returns the position in the ring of the newest record with the hash h.
func (s *section) find(h Hash) (position uint32, found bool) {
	if len(s.index) == 0 {
		return s.scan(h)
	}
	size := len(s.index) / 4
	for i := int(h.lo & uint64(size-1)); ; i = (i + 1) & (size - 1) {
		entry := s.entry(i)
		if entry == 0 {
			return 0, false
		}
		if h.is(s.slot(entry - 1)) {
			return entry - 1, true
		}
	}
}

// scan does what find does, for a section without an index.
func (s *section) scan(h Hash) (position uint32, found bool) {
	narrow := s.calls == s.used // all records have one slot each
	for i := uint32(0); i < s.used; {
		p := s.at(i)
		slot := s.slot(p)
		if binary.LittleEndian.Uint64(slot) == h.lo && h.is(slot) {
			position, found = p, true
		}
		if i++; !narrow {
			i += width(slot) - 1
		}
	}
	return position, found
}

// entry returns the entry at position i of the index.
func (s *section) entry(i int) uint32 { return binary.LittleEndian.Uint32(s.index[4*i:]) }

func (s *section) setEntry(i int, n uint32) { binary.LittleEndian.PutUint32(s.index[4*i:], n) }

// enter adds the record at a position of the ring to the index. A record with the same hash, whose
// time has passed, leaves the index.
func (s *section) enter(position uint32) {
	if len(s.index) == 0 {
		return
	}
	slot, size := s.slot(position), len(s.index)/4
	i := home(slot, size)
	for ; s.entry(i) != 0; i = (i + 1) & (size - 1) {
		if other := s.slot(s.entry(i) - 1); string(other[:15]) == string(slot[:15]) {
			break
		}
	}
	s.setEntry(i, position+1)
}

// leave removes the record at a position of the ring from the index, if it is there. It moves the
// entries after it so that each can still be found.
func (s *section) leave(position uint32) {
	if len(s.index) == 0 {
		return
	}
	size := len(s.index) / 4
	mask := size - 1
	free := home(s.slot(position), size)
	for s.entry(free) != position+1 {
		if s.entry(free) == 0 {
			return
		}
		free = (free + 1) & mask
	}
	for i := (free + 1) & mask; s.entry(i) != 0; i = (i + 1) & mask {
		want := home(s.slot(s.entry(i)-1), size)
		if (i-want)&mask >= (i-free)&mask { // the search for this entry would pass the free position
			s.setEntry(free, s.entry(i))
			free = i
		}
	}
	s.setEntry(free, 0)
}

// drop removes the first record. There must be one.
func (s *section) drop() {
	w := width(s.slot(s.head))
	s.leave(s.head)
	s.head, s.first, s.used, s.calls = s.at(w), s.first+w, s.used-w, s.calls-1
}

// putAll adds the stored records after the last one. There must be room.
func (s *section) putAll(records []byte) {
	for len(records) > 0 {
		n := int(width(records)) * recordSize
		s.put(records[:n])
		records = records[n:]
	}
}

// put adds a stored record, of one or two slots, after the last one. There must be room.
func (s *section) put(record []byte) {
	position := s.at(s.used)
	for n := uint32(0); len(record) > 0; n++ {
		copy(s.slot(s.at(s.used+n)), record[:recordSize])
		record = record[recordSize:]
	}
	s.used += width(s.slot(position))
	s.calls++
	s.enter(position)
}

// Find returns the record of a call with the token of c, if records, a section of a value, has it and
// its time has not passed at now.
func Find(records []byte, now limit.Instant, c *Call) (r Record, found bool) {
	s := open(records)
	p, found := s.find(c.Hash(s.seed))
	if !found {
		return Record{}, false
	}
	if r = s.record(p); r.Until <= now {
		return Record{}, false
	}
	return r, true
}

// Seed returns the key of the hash in records, a section of a value.
func Seed(records []byte) uint64 {
	return binary.LittleEndian.Uint64(records[len(records)-footerSize:])
}

// Count returns the number of calls that records, a section of a value, has at now.
func Count(records []byte, now limit.Instant) int64 {
	s := open(records)
	n := int64(0)
	for i := uint32(0); i < s.used; {
		slot := s.slot(s.at(i))
		if until(slot) > now {
			n++
		}
		i += width(slot)
	}
	return n
}

// Check returns the state of the limiter in value, which may be any bytes, such as the bytes of a
// file. The error is [ErrCorrupt] if they do not end with a valid section of records. Check does
// not check the state.
func Check(value []byte) (state []byte, err error) {
	if len(value) < footerSize {
		return nil, ErrCorrupt
	}
	size := binary.LittleEndian.Uint32(value[len(value)-4:])
	if size > maxCap || lengthOf(size) > len(value) {
		return nil, ErrCorrupt
	}
	state, records := Split(value)
	s := open(records)
	if s.used > s.size || s.head > 0 && s.head >= s.size || !s.sound() {
		return nil, ErrCorrupt
	}
	return state, nil
}

// sound reports whether the slots and the index of s are valid.
func (s *section) sound() bool {
	calls := uint32(0)
	for i := uint32(0); i < s.used; calls++ {
		slot := s.slot(s.at(i))
		if flags(slot) > allFlags {
			return false
		}
		if i += width(slot); i > s.used {
			return false
		}
		if width(slot) == 2 && !zero(s.slot(s.at(i - 1))[16:]) {
			return false
		}
	}
	return calls == s.calls && s.indexed()
}

// indexed reports whether a search in the index of s finds each record, or a newer one with the same
// hash, and whether the index has no other entries and a free position.
func (s *section) indexed() bool {
	size := len(s.index) / 4
	if size == 0 {
		return true
	}
	newest := make(map[Hash]uint32, s.calls) // position in the ring of the newest record of each hash
	for i := uint32(0); i < s.used; i += width(s.slot(s.at(i))) {
		newest[HashIn(s.slot(s.at(i)))] = s.at(i)
	}
	entries := 0
	for i := range size {
		switch n := s.entry(i); {
		case n > s.size:
			return false
		case n > 0:
			entries++
		}
	}
	if entries != len(newest) || entries == size {
		return false
	}
	for h, position := range newest {
		if p, found := s.find(h); !found || p != position {
			return false
		}
	}
	return true
}
