package dense

import (
	"sync/atomic"
	"unsafe"
)

// directory finds the segment of a hash by the upper bits of the hash: extendible hashing. A full
// segment is divided by the next bit, which moves only its own slots. The directory doubles only
// when a segment becomes deeper than the directory.
type directory struct {
	leaves []leaf // 1<<depth leaves, indexed by the upper depth bits of a hash
	depth  uint8  // number of bits of a hash that the directory uses
	shift  uint8  // 32 - depth, the number of bits by which a hash is shifted right to get its leaf
	// deepest is the number of segments that have the same depth as the directory.
	deepest int
	// segments is the number of segments, each of one page.
	segments int
	arena    *Arena
	mem      *Memory
	// seen points to leaves, for [Load], which reads them without the lock.
	seen atomic.Pointer[[]leaf]
}

// leaf is an entry of the directory. A segment that is less deep than the directory has several
// neighbouring leaves; only the first of them has the right count.
type leaf struct {
	slots *segment
	count uint16 // used slots of the segment
	depth uint8  // number of upper bits that all hashes of the segment share
}

const (
	// splitAt is the number of used slots at which a segment is divided: 13/16 of all slots, at
	// which a probe examines about three slots.
	splitAt = segmentSlots * 13 / 16
	// mergeAt is the number of used slots of two neighbouring segments together at which they are
	// merged. It is half of splitAt, so that a segment is not divided and merged again and again.
	mergeAt = splitAt / 2
	// maxDepth is the maximum depth of the directory. It would be exceeded only if hundreds of keys
	// shared 20 bits of a seeded hash.
	maxDepth = 20
)

const leafBytes = int64(unsafe.Sizeof(leaf{}))

// init makes d a directory of depth 0 with one segment.
func (d *directory) init(a *Arena, m *Memory) {
	d.arena, d.mem, d.deepest, d.segments = a, m, 1, 1
	d.resize([]leaf{{slots: a.segment()}}, 0)
	m.Add(pageSize)
}

// segment returns the segment that has the slots of hash.
func (d *directory) segment(hash uint32) *segment { return d.leaves[hash>>d.shift].slots }

// first returns the index of the first leaf that has the same segment as leaf i.
func (d *directory) first(i uint32) uint32 {
	span := d.depth - d.leaves[i].depth
	return i >> span << span
}

// room makes room for one more slot in the segment of hash, by dividing the segment if it is full.
// It returns false if there is no room and the segment cannot be divided.
func (d *directory) room(hash uint32) bool {
	for {
		i := d.first(hash >> d.shift)
		switch n := d.leaves[i].count; {
		case n < splitAt:
			return true
		case d.leaves[i].depth == maxDepth:
			return n < segmentSlots-1
		}
		d.split(i)
	}
}

// add adds a slot with hash and the record number. The caller has called room with hash before, and
// room has returned true.
func (d *directory) add(hash, number uint32) {
	l := &d.leaves[d.first(hash>>d.shift)]
	l.slots.put(slotOf(hash, number))
	l.count++
}

// replace changes the record number in the slot that has hash and old from old to number.
func (d *directory) replace(hash, old, number uint32) {
	g := d.segment(hash)
	g[g.index(slotOf(hash, old))] = slotOf(hash, number)
}

// remove deletes the slot with hash and the record number, and merges the slot's segment with its
// neighbour if the two have become small.
func (d *directory) remove(hash, number uint32) {
	i := d.first(hash >> d.shift)
	l := &d.leaves[i]
	l.slots.delete(l.slots.index(slotOf(hash, number)))
	l.count--
	if l.count <= mergeAt/2 {
		d.merge(i)
	}
}

// split divides the segment whose first leaf is i, and doubles the directory if it is not deep
// enough.
func (d *directory) split(i uint32) {
	if d.leaves[i].depth == d.depth {
		d.double()
		i *= 2
	}
	other := d.arena.segment()
	d.mem.Add(pageSize)
	d.segments++
	l := d.leaves[i]
	l.depth++
	right := leaf{slots: other, depth: l.depth}
	l.count, right.count = l.slots.divide(1<<(32-l.depth), other)
	half := uint32(1) << (d.depth - l.depth)
	d.fill(i, half, l)
	d.fill(i+half, half, right)
	if l.depth == d.depth {
		d.deepest += 2
	}
}

// merge merges the segment whose first leaf is i with its neighbour, if the two together are small
// enough. It halves the directory if possible.
func (d *directory) merge(i uint32) {
	l := d.leaves[i]
	if l.depth == 0 {
		return
	}
	span := uint32(1) << (d.depth - l.depth)
	j := i ^ span
	other := d.leaves[j]
	if other.depth != l.depth || l.count+other.count > mergeAt {
		return
	}
	l.slots.absorb(other.slots)
	d.arena.freeSegment(other.slots)
	d.mem.Add(-pageSize)
	d.segments--
	if l.depth == d.depth {
		d.deepest -= 2
	}
	l.count += other.count
	l.depth--
	d.fill(min(i, j), 2*span, l)
	if d.depth > 0 && d.deepest == 0 {
		d.halve()
	}
}

// fill sets the n leaves from i on to l.
func (d *directory) fill(i, n uint32, l leaf) {
	for k := i; k < i+n; k++ {
		d.leaves[k] = l
	}
}

// double doubles the directory: each leaf becomes two.
func (d *directory) double() {
	leaves := make([]leaf, 2*len(d.leaves))
	for i, l := range d.leaves {
		leaves[2*i], leaves[2*i+1] = l, l
	}
	d.resize(leaves, d.depth+1)
	d.deepest = 0
}

// halve halves the directory, by dropping every second leaf, until a segment is as deep as the
// directory.
func (d *directory) halve() {
	for d.depth > 0 && d.deepest == 0 {
		leaves := make([]leaf, len(d.leaves)/2)
		for i := range leaves {
			leaves[i] = d.leaves[2*i]
			if leaves[i].depth == d.depth-1 {
				d.deepest++
			}
		}
		d.resize(leaves, d.depth-1)
	}
}

// resize replaces the leaves and the depth, counts the difference in memory, and publishes the
// leaves in seen.
func (d *directory) resize(leaves []leaf, depth uint8) {
	d.mem.Add(leafBytes * int64(len(leaves)-len(d.leaves)))
	d.leaves, d.depth, d.shift = leaves, depth, 32-depth
	d.seen.Store(&leaves)
}

// free frees all segments and the leaves. d must not be used afterwards.
func (d *directory) free() {
	for i := uint32(0); i < uint32(len(d.leaves)); {
		l := d.leaves[i]
		d.arena.freeSegment(l.slots)
		i += 1 << (d.depth - l.depth)
	}
	d.mem.Add(-int64(d.segments)*pageSize - leafBytes*int64(len(d.leaves)))
	d.leaves = nil
}
