package dense

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Table stores entries by their keys, in two structures without pointers: an index of eight bytes
// per slot (directory.go, segment.go), and records in dense vectors by size (vector.go, record.go).
// An entry takes 12 bytes beside key and value, and 10 to 20 bytes for its share of the index. That
// does not grow as keys are added and removed.
type Table struct {
	index   directory
	vectors [numClasses]vector
	blobs   blobs
	count   int
	arena   *Arena
	mem     *Memory
	hash    func(key []byte) uint32
}

const tableBytes = int64(unsafe.Sizeof(Table{}))

// New returns an empty table that takes its memory from a and reports it to m. hash returns the
// lower half of the hash of a key, by which the table finds an entry again from its key.
func New(a *Arena, m *Memory, hash func(key []byte) uint32) *Table {
	m.Add(tableBytes)
	t := &Table{hash: hash, blobs: blobs{mem: m}, arena: a, mem: m}
	t.index.init(a, m)
	return t
}

func (t *Table) record(number uint32) []byte {
	class := number >> placeBits
	return t.vectors[class].record(&classes[class], number)
}

// parts returns the key and the value of a record. The capacity of value is the room that it has to
// grow in place.
func (t *Table) parts(rec []byte) (key, value []byte) {
	h := header(rec)
	n := keyLength(h)
	if h&headBeside != 0 {
		b := &t.blobs.list[blobNumber(rec)]
		return b.key, b.value
	}
	return rec[recordHead : recordHead+n : recordHead+n], rec[recordHead+n : len(rec)-int(h>>slackShift)]
}

func entryOf(rec, value []byte) entry.Entry {
	return entry.Entry{Kind: entry.Kind(header(rec) & headKind), Expiry: expiry(rec), Value: value}
}

// Find returns where key is stored, and its entry, or kind None. value is the stored memory itself:
// it may be changed in place, extended within its capacity and passed to Store. It is invalid after
// the next Insert, Store or Remove. The parts of the entry are separate results so that they stay
// in registers.
func (t *Table) Find(hash uint32, key []byte) (r Ref, kind entry.Kind, at limit.Instant, value []byte) {
	g := t.index.segment(hash)
	for i := hash & slotMask; ; i = (i + 1) & slotMask {
		s := g[i]
		if s == 0 {
			return 0, entry.None, 0, nil
		}
		if slotHash(s) != hash {
			continue
		}
		rec := t.record(slotNumber(s))
		if k, value := t.parts(rec); bytes.Equal(k, key) {
			return Ref(slotNumber(s)), entry.Kind(header(rec) & headKind), expiry(rec), value
		}
	}
}

// Insert adds key, which must be absent, and copies key and value. It reports whether there was
// room.
func (t *Table) Insert(hash uint32, key []byte, e entry.Entry) bool {
	if !t.index.room(hash) {
		return false
	}
	number, ok := t.place(key, e)
	if !ok {
		return false
	}
	t.index.add(hash, number)
	t.count++
	return true
}

// place writes a new record and returns its number.
func (t *Table) place(key []byte, e entry.Entry) (number uint32, ok bool) {
	size := recordHead + len(key) + len(e.Value)
	beside := size > maxInline
	if beside {
		size = blobRecord
	}
	class := classOf(size)
	v := &t.vectors[class]
	if v.full(&classes[class]) {
		return 0, false
	}
	number = v.push(class, t.arena, t.mem)
	rec := v.record(&classes[class], number)
	putExpiry(rec, e.Expiry)
	h := uint32(e.Kind) | uint32(len(key))<<keyShift
	if beside {
		putHeader(rec, h|headBeside)
		binary.LittleEndian.PutUint32(rec[recordHead:], t.blobs.add(key, &e))
		return number, true
	}
	putHeader(rec, h|uint32(len(rec)-size)<<slackShift)
	copy(rec[recordHead:], key)
	copy(rec[recordHead+len(key):], e.Value)
	return number, true
}

// Store replaces an entry except for its key. e.Value may be what Find returned, a part of it or an
// extension of it.
func (t *Table) Store(r Ref, e entry.Entry) {
	number := uint32(r)
	rec := t.record(number)
	h := header(rec)
	n := keyLength(h)
	size := recordHead + n + len(e.Value)
	switch {
	case h&headBeside != 0 && size > maxInline:
		t.blobs.set(blobNumber(rec), &e)
		h = h&^headKind | uint32(e.Kind)
	case h&headBeside == 0 && size <= maxInline && classOf(size) == number>>placeBits:
		// If the value is already in place, this copies nothing.
		copy(rec[recordHead+n:], e.Value)
		h = uint32(e.Kind) | uint32(n)<<keyShift | uint32(len(rec)-size)<<slackShift
	default:
		t.relocate(number, rec, e)
		return
	}
	putHeader(rec, h)
	putExpiry(rec, e.Expiry)
}

// relocate stores e in a record of another size. It removes the old record last, since key and
// value may lie in it.
func (t *Table) relocate(number uint32, rec []byte, e entry.Entry) {
	key, _ := t.parts(rec)
	to, ok := t.place(key, e)
	if !ok {
		panic("dense: no record number is left")
	}
	t.index.replace(t.hash(key), number, to)
	t.discard(number)
}

// Remove removes an entry. Every Ref is invalid afterwards.
func (t *Table) Remove(r Ref) {
	number := uint32(r)
	key, _ := t.parts(t.record(number))
	t.index.remove(t.hash(key), number)
	t.discard(number)
	t.count--
}

// discard removes a record that is no longer in the index from its vector, and moves the last
// record into its place.
func (t *Table) discard(number uint32) {
	class := number >> placeBits
	c, v := &classes[class], &t.vectors[class]
	rec := v.record(c, number)
	if header(rec)&headBeside != 0 {
		t.blobs.remove(blobNumber(rec))
	}
	if last := c.number(class, v.n-1); last != number {
		moved := v.record(c, last)
		key, _ := t.parts(moved)
		t.index.replace(t.hash(key), last, number)
		copy(rec, moved)
	}
	v.pop(c, t.arena, t.mem)
}

// At returns the key and the entry at r. The key must not be changed.
func (t *Table) At(r Ref) ([]byte, entry.Entry) {
	rec := t.record(uint32(r))
	key, value := t.parts(rec)
	return key, entryOf(rec, value)
}

// Scan calls f for every entry of a part of the table, about count of them, and returns the cursor
// of the next part, or 0 after the last. An entry that exists during the whole scan is seen at
// least once, whatever changes between two calls. f must not change the table. Cursors stay below
// 2^40.
//
// It visits ranges of hashes in ascending order. The range of a segment does not depend on how
// other segments are divided and merged, and a key never leaves it.
func (t *Table) Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) uint64 {
	const end = 1 << 32
	for seen := 0; cursor < end && seen < count; {
		i := t.index.first(uint32(cursor) >> t.index.shift)
		l := t.index.leaves[i]
		from, width := uint64(i)<<t.index.shift, uint64(end)>>l.depth
		to := from + width
		if rest := count - seen; rest < int(l.count) {
			// About the requested number, if the hashes are evenly distributed.
			to = min(to, cursor+max(1, width/uint64(l.count)*uint64(rest)))
		}
		for _, s := range l.slots {
			if h := uint64(slotHash(s)); s != 0 && h >= cursor && h < to {
				key, e := t.At(Ref(slotNumber(s)))
				f(key, e)
				seen++
			}
		}
		cursor = to
	}
	if cursor >= end {
		return 0
	}
	return cursor
}

// Due examines entries from position *pos on until it finds one that expires at or before now, and
// subtracts their number from *budget. It leaves *pos where the search continues once that entry
// has been removed, so that an entry which exists during a whole round is examined. At the end of a
// round *pos is 0, where the next round begins.
//
// It examines records in the order of memory, from the last to the first: the record that moves
// into the place of a removed one has then been examined already, and where all records expire none
// is moved. *pos has the class in the upper half and the number of its records that are still to be
// examined in the lower half.
func (t *Table) Due(pos *uint64, budget *int, now limit.Instant) (Ref, bool) {
	class, left := uint32(*pos>>32), uint32(*pos)
	if *pos == 0 {
		class, left = numClasses-1, t.vectors[numClasses-1].n
	}
	for class > 0 {
		c, v := &classes[class], &t.vectors[class]
		for left = min(left, v.n); left > 0; left-- {
			if *budget == 0 {
				*pos = uint64(class)<<32 | uint64(left)
				return 0, false
			}
			*budget--
			number := c.number(class, left-1)
			if expiry(v.record(c, number)) <= now {
				*pos = uint64(class)<<32 | uint64(left-1)
				return Ref(number), true
			}
		}
		class--
		left = t.vectors[class].n
	}
	*pos = 0
	return 0, false
}

// Random returns one of the entries, chosen by x with equal probability. The table must not be
// empty.
func (t *Table) Random(x uint64) Ref {
	i := uint32(x % uint64(t.count))
	for class := uint32(1); ; class++ {
		if n := t.vectors[class].n; i >= n {
			i -= n
			continue
		}
		return Ref(classes[class].number(class, i))
	}
}

// slotShare is the share of a key in the index: its slot, and about as much free space. The rest of
// a nearly empty table does not count for its keys.
const slotShare = 16

// Cost returns the number of bytes that the entry at r takes, including its share of the index.
func (t *Table) Cost(r Ref) int64 {
	rec := t.record(uint32(r))
	n := int64(len(rec)) + slotShare
	if header(rec)&headBeside != 0 {
		n += t.blobs.list[blobNumber(rec)].size()
	}
	return n
}

// Len returns the number of entries.
func (t *Table) Len() int { return t.count }

// Free frees all memory. The table must not be used afterwards.
func (t *Table) Free() {
	for class := 1; class < numClasses; class++ {
		t.vectors[class].free(&classes[class], t.arena, t.mem)
	}
	for i := range t.blobs.list {
		if t.blobs.list[i].value != nil {
			t.blobs.remove(uint32(i))
		}
	}
	t.index.free()
	t.mem.Add(-tableBytes)
}

// Ref is a position in a table, valid until the table's next insert or remove.
type Ref uint64
