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
// An entry takes 12 bytes in addition to key and value, and 10 to 20 bytes for its share of the
// index. This overhead does not grow as keys are added and removed.
type Table struct {
	index   directory
	vectors [numClasses]vector
	blobs   blobs
	count   int
	arena   *Arena
	mem     *Memory
	hash    func(key []byte) uint32
}

// tableBytes is the number of bytes that an empty table takes, without its index.
const tableBytes = int64(unsafe.Sizeof(Table{}))

// New returns an empty table that takes its memory from a and counts it in m. hash returns the
// lower half of the hash of key; the table needs it to find the slot of an entry that it moves or
// removes.
func New(a *Arena, m *Memory, hash func(key []byte) uint32) *Table {
	m.Add(tableBytes)
	t := &Table{hash: hash, blobs: blobs{mem: m}, arena: a, mem: m}
	t.index.init(a, m)
	return t
}

// record returns the bytes of the record with the given number.
func (t *Table) record(number uint32) []byte {
	class := number >> placeBits
	return t.vectors[class].record(&classes[class], number)
}

// parts returns the key and the value of the record rec. The value may grow in place up to its
// capacity.
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

// Find returns r, a reference to the entry of key, whose hash is hash, and the entry's kind, expiry
// (at) and value. The kind is [entry.None] if there is no entry. value is the stored memory itself:
// the caller may change it in place, extend it within its capacity and pass it to Store. value is
// invalid after the next Insert, Store or Remove. The parts of the entry are separate results so
// that they stay in registers.
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

// Insert adds key, which must be absent and whose hash is hash, with entry e. It copies key and,
// unless e.Made is set, the value. It returns false and changes nothing if the table has no room.
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

// place writes a new record with key and e and returns its number. ok is false if no record number
// is left.
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

// Store replaces the entry at r by e. The key stays. e.Value may be the value that Find returned, a
// part of it or an extension of it. Store panics if the entry needs a new record and no record
// number is left.
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

// relocate stores e in a new record of another size, in place of rec, whose number is number. It
// removes the old record last, since the key and e.Value may lie in it.
func (t *Table) relocate(number uint32, rec []byte, e entry.Entry) {
	key, _ := t.parts(rec)
	to, ok := t.place(key, e)
	if !ok {
		panic("dense: no record number is left")
	}
	t.index.replace(t.hash(key), number, to)
	t.discard(number)
}

// Remove removes the entry at r. Every Ref of the table is invalid afterwards.
func (t *Table) Remove(r Ref) {
	number := uint32(r)
	key, _ := t.parts(t.record(number))
	t.index.remove(t.hash(key), number)
	t.discard(number)
	t.count--
}

// discard removes the record with the given number from its vector, and moves the last record of
// the vector into its place. The removed record must no longer be in the index.
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

// At returns the key and the entry at r. The caller must not change the key. The key and the value
// of the entry are invalid after the next Insert, Store or Remove.
func (t *Table) At(r Ref) ([]byte, entry.Entry) {
	rec := t.record(uint32(r))
	key, value := t.parts(rec)
	return key, entryOf(rec, value)
}

// Scan calls f for every entry of the part of the table at cursor, which has about count entries.
// It returns the cursor of the next part, or 0 after the last. The cursor of the first part is 0.
// An entry that exists during the whole scan is passed to f at least once, whatever changes between
// two calls. f must not change the table. Cursors stay below 2^40.
//
// A part is a range of hashes, and Scan visits the ranges in ascending order. So a key is always in
// the same range, however segments are divided and merged.
func (t *Table) Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) uint64 {
	const end = 1 << 32
	for seen := 0; cursor < end && seen < count; {
		i := t.index.first(uint32(cursor) >> t.index.shift)
		l := t.index.leaves[i]
		from, width := uint64(i)<<t.index.shift, uint64(end)>>l.depth
		to := from + width
		if rest := count - seen; rest < int(l.count) {
			// If the hashes are evenly distributed, this range has about the requested number of
			// entries.
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

// Due examines entries from position *pos on, until it finds one that expires at or before now and
// returns a reference to it. It returns false at the end of a round, or if *budget is 0. Due
// subtracts the number of examined entries from *budget. It sets *pos to the position at which the
// search continues once the returned entry has been removed. An entry that exists during a whole
// round is examined. At the end of a round *pos is 0, and the next round begins there.
//
// Due examines the records of each vector from the last to the first. So the record that moves into
// the place of a removed one has been examined already, and if all records have expired, none is
// moved. The upper half of *pos is the size class, and the lower half is the number of records of
// this class that are still to be examined.
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

// Random returns a reference to an entry that x chooses. If x is random, all entries have the same
// probability. The table must not be empty.
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

// slotShare is the number of bytes of the index that count for one key: its slot, and about as much
// free space. In a nearly empty table the rest of the index counts for no key.
const slotShare = 16

// Cost returns the number of bytes that the entry at r takes, including its slot and about as much
// free space of the index.
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

// Free frees all memory of the table. The table must not be used afterwards.
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

// Ref refers to an entry of a table. It is valid until the next Insert, Store or Remove of the
// table.
type Ref uint64
