package dense

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Probe has the hash of a key that is about to be looked up, and what [Load] has found out about
// the key without a lock.
type Probe struct {
	Hash  uint64   // the table uses its lower half
	Table *Table   // nil if there is no table yet
	slots *segment // where in the index the key may be; nil if there is no table
	// number is the number of the record that the key probably has.
	number uint32
}

// MostProbes is the maximum number of keys that are loaded together: more loads than a processor
// keeps in flight.
const MostProbes = 32

// Load loads the memory of at most MostProbes keys, so that the next commands find it in the
// processor's caches. The lookup of one key waits for two loads that depend on each other; here the
// loads of many keys overlap.
//
// It takes no lock, so it may read a table while that changes. Its results are only hints. Reading
// is safe because pages are never unmapped before the arena is closed (memory that is returned to
// the system keeps its address), and because the lists of segments and chunks are read through
// atomic pointers. The race detector rightly reports unsynchronized loads, so under it Load does
// nothing.
func Load(probes []Probe) {
	if raceDetector {
		return
	}
	var at [2 * MostProbes]unsafe.Pointer
	touch(at[:findSlots(probes, &at)])
	touch(at[:findRecords(probes, &at)])
}

// findSlots finds the segments of keys and stores the addresses of the keys' slots in at. It
// returns the number of addresses.
func findSlots(probes []Probe, at *[2 * MostProbes]unsafe.Pointer) (n int) {
	for i := range probes {
		p := &probes[i]
		if p.Table == nil {
			continue
		}
		leaves := *p.Table.index.seen.Load()
		// The number of leaves is a power of two, so this is hash >> shift.
		p.slots = leaves[uint64(uint32(p.Hash))*uint64(len(leaves))>>32].slots
		at[n] = unsafe.Pointer(&p.slots[p.Hash&slotMask])
		n++
	}
	return n
}

// maxProbe is the number of slots that are examined: few keys are further from their home slot.
const maxProbe = 8

// findRecords stores the addresses of the records to which the slots lead in at: both ends of each
// record, which may lie in two cache lines.
func findRecords(probes []Probe, at *[2 * MostProbes]unsafe.Pointer) (n int) {
	for i := range probes {
		p := &probes[i]
		if p.slots == nil {
			continue
		}
		hash := uint32(p.Hash)
		for j := range uint32(maxProbe) {
			s := p.slots[(hash+j)&slotMask]
			if s == 0 {
				break
			}
			if slotHash(s) == hash {
				p.number = slotNumber(s)
				if ch, off, size := p.Table.whereabouts(p.number); ch != nil {
					at[n], at[n+1] = unsafe.Pointer(&ch[off]), unsafe.Pointer(&ch[off+size-1])
					n += 2
				}
				break
			}
		}
	}
	return n
}

// Confirm is Find for a key that was probed. If there is a record of the number that Load has
// found, and it has the key, it is the right one. Otherwise ok is false, and Find is needed.
func (t *Table) Confirm(p *Probe, key []byte) (r Ref, kind entry.Kind, at limit.Instant, value []byte, ok bool) {
	if p.number == 0 || p.Table != t || !t.live(p.number) {
		return 0, entry.None, 0, nil, false
	}
	rec := t.record(p.number)
	name, value := t.parts(rec)
	if !bytes.Equal(name, key) {
		return 0, entry.None, 0, nil, false
	}
	return Ref(p.number), entry.Kind(header(rec) & headKind), expiry(rec), value, true
}

// whereabouts returns the chunk, offset and size of a record, if there can be one of that number.
func (t *Table) whereabouts(number uint32) (ch *chunk, off, size uint32) {
	class := number >> placeBits
	if class >= numClasses {
		return nil, 0, 0
	}
	chunks, c := t.vectors[class].seen.Load(), &classes[class]
	place := number & placeMask
	if chunks == nil || int(place>>c.bits) >= len(*chunks) {
		return nil, 0, 0
	}
	if off = place & c.mask * c.size; off+c.size > chunkSize {
		return nil, 0, 0
	}
	return (*chunks)[place>>c.bits], off, c.size
}

// live reports whether there is a record of that number.
func (t *Table) live(number uint32) bool {
	class := number >> placeBits
	if class >= numClasses {
		return false
	}
	c, place := &classes[class], number&placeMask
	return place&c.mask < c.per && uint64(place>>c.bits)*uint64(c.per)+uint64(place&c.mask) < uint64(t.vectors[class].n)
}
