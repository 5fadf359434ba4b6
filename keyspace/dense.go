package keyspace

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/cellserver/cellserver/limit"
)

// denseTable stores entries by their keys, in two structures without pointers: an index of eight
// bytes per slot (directory.go, segment.go), and records in dense vectors by size
// (vector.go). An entry takes 12 bytes beside key and value, and 10 to 20 for its
// share of the index; nothing else, however many come and go.
//
// A record is
//
//	8 bytes  expiry
//	4 bytes  header: kind (7 bits), beside (1), length of the key (15), slack (9)
//	         key, value, and slack unused bytes
//
// or, if it would be longer than maxInline, has its header followed by the number
// of a blob (blobs.go), 4 bytes, that holds key and value.
type denseTable struct {
	index   directory
	vectors [numClasses]vector
	blobs   blobs
	count   int
	arena   *arena
	mem     *Memory
	hash    func(key []byte) uint32
}

const (
	recordHead = 12
	blobRecord = recordHead + 4

	headKind   = 1<<7 - 1
	headBeside = 1 << 7
	keyShift   = 8
	keyMask    = 1<<15 - 1
	slackShift = 23
)

const tableBytes = int64(unsafe.Sizeof(denseTable{}))

// newDenseTable makes an empty table that takes its memory from a and reports it to m. hash is
// the lower half of the hash of keys, by which an entry is found again from its key.
func newDenseTable(a *arena, m *Memory, hash func(key []byte) uint32) *denseTable {
	m.Add(tableBytes)
	t := &denseTable{hash: hash, blobs: blobs{mem: m}, arena: a, mem: m}
	t.index.init(a, m)
	return t
}

func (t *denseTable) record(number uint32) []byte {
	class := number >> placeBits
	return t.vectors[class].record(&classes[class], number)
}

func header(rec []byte) uint32 { return binary.LittleEndian.Uint32(rec[8:]) }

func putHeader(rec []byte, h uint32) { binary.LittleEndian.PutUint32(rec[8:], h) }

func putExpiry(rec []byte, at limit.Instant) { binary.LittleEndian.PutUint64(rec, uint64(at)) }

func expiry(rec []byte) limit.Instant { return limit.Instant(binary.LittleEndian.Uint64(rec)) }

func blobNumber(rec []byte) uint32 { return binary.LittleEndian.Uint32(rec[recordHead:]) }

func keyLength(h uint32) int { return int(h >> keyShift & keyMask) }

// parts returns the key and the value of a record, the latter with the capacity to
// grow that it has where it is.
func (t *denseTable) parts(rec []byte) (key, value []byte) {
	h := header(rec)
	n := keyLength(h)
	if h&headBeside != 0 {
		b := &t.blobs.list[blobNumber(rec)]
		return b.key, b.value
	}
	return rec[recordHead : recordHead+n : recordHead+n], rec[recordHead+n : len(rec)-int(h>>slackShift)]
}

func entryOf(rec, value []byte) Entry {
	return Entry{Kind: Kind(header(rec) & headKind), Expiry: expiry(rec), Value: value}
}

func (t *denseTable) find(hash uint32, key []byte) (r ref, kind Kind, at limit.Instant, value []byte) {
	g := t.index.segment(hash)
	for i := hash & slotMask; ; i = (i + 1) & slotMask {
		s := g[i]
		if s == 0 {
			return 0, None, 0, nil
		}
		if slotHash(s) != hash {
			continue
		}
		rec := t.record(slotNumber(s))
		if k, value := t.parts(rec); bytes.Equal(k, key) {
			return ref(slotNumber(s)), Kind(header(rec) & headKind), expiry(rec), value
		}
	}
}

func (t *denseTable) insert(hash uint32, key []byte, e Entry) bool {
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
func (t *denseTable) place(key []byte, e Entry) (number uint32, ok bool) {
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

func (t *denseTable) store(r ref, e Entry) {
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
		// The value may lie here already: then this copies nothing.
		copy(rec[recordHead+n:], e.Value)
		h = uint32(e.Kind) | uint32(n)<<keyShift | uint32(len(rec)-size)<<slackShift
	default:
		t.relocate(number, rec, e)
		return
	}
	putHeader(rec, h)
	putExpiry(rec, e.Expiry)
}

// relocate stores e in a record of another size. The old one, in which key and
// value may still lie, goes last.
func (t *denseTable) relocate(number uint32, rec []byte, e Entry) {
	key, _ := t.parts(rec)
	to, ok := t.place(key, e)
	if !ok {
		panic("dense: no record number is left")
	}
	t.index.replace(t.hash(key), number, to)
	t.discard(number)
}

func (t *denseTable) remove(r ref) {
	number := uint32(r)
	key, _ := t.parts(t.record(number))
	t.index.remove(t.hash(key), number)
	t.discard(number)
	t.count--
}

// discard takes a record that is not in the index any more out of its vector, and
// moves the last one into its place.
func (t *denseTable) discard(number uint32) {
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

func (t *denseTable) at(r ref) ([]byte, Entry) {
	rec := t.record(uint32(r))
	key, value := t.parts(rec)
	return key, entryOf(rec, value)
}

// scan goes through the hashes in ascending order, a range of them at a time. The
// range of a segment stays what it is whatever is divided and merged around it, and
// a key never leaves it.
func (t *denseTable) scan(cursor uint64, count int, f func(key []byte, e Entry)) uint64 {
	const end = 1 << 32
	for seen := 0; cursor < end && seen < count; {
		i := t.index.first(uint32(cursor) >> t.index.shift)
		l := t.index.leaves[i]
		from, width := uint64(i)<<t.index.shift, uint64(end)>>l.depth
		to := from + width
		if rest := count - seen; rest < int(l.count) {
			// About as many as are asked for, if they lie evenly.
			to = min(to, cursor+max(1, width/uint64(l.count)*uint64(rest)))
		}
		for _, s := range l.slots {
			if h := uint64(slotHash(s)); s != 0 && h >= cursor && h < to {
				key, e := t.at(ref(slotNumber(s)))
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

// due goes through the records as they lie in memory, from the last to the first:
// then what moves into the place of a removed record has been looked at already,
// and where all expire nothing moves at all. *pos is the class in the upper half
// and the number of its records that are still to be looked at in the lower.
func (t *denseTable) due(pos *uint64, budget *int, now limit.Instant) (ref, bool) {
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
				return ref(number), true
			}
		}
		class--
		left = t.vectors[class].n
	}
	*pos = 0
	return 0, false
}

func (t *denseTable) random(x uint64) ref {
	i := uint32(x % uint64(t.count))
	for class := uint32(1); ; class++ {
		if n := t.vectors[class].n; i >= n {
			i -= n
			continue
		}
		return ref(classes[class].number(class, i))
	}
}

// slotShare is what a key takes of the index: its slot, and about as much again that
// is free. What a nearly empty table costs beyond that is not the key's.
const slotShare = 16

func (t *denseTable) cost(r ref) int64 {
	rec := t.record(uint32(r))
	n := int64(len(rec)) + slotShare
	if header(rec)&headBeside != 0 {
		n += t.blobs.list[blobNumber(rec)].size()
	}
	return n
}

func (t *denseTable) len() int { return t.count }

func (t *denseTable) free() {
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
