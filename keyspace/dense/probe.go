package dense

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Probe is a key that is about to be looked for, by its hash, and what [Load] has
// found out about it without a lock.
type Probe struct {
	Hash  uint64   // of which the table knows the lower half
	Table *Table   // nil if there is none yet
	slots *segment // where in the index the key may be; nil if there is nothing
	// number is that of the record that it probably has.
	number uint32
}

// MostProbes is how many keys are loaded together: more loads than a processor keeps in
// flight.
const MostProbes = 32

// Load loads the memory that keys lie in, MostProbes at most, so that what is done
// with them next finds it in the processor's caches. Looking up one key waits for two
// loads that depend on each other; here those of many keys wait together.
//
// It takes no lock, so it may see a table while that changes, and it believes
// nothing of what it sees: it only loads. That is safe because pages are never
// unmapped before the arena is closed (what is given back to the system keeps its
// address), and because the lists of segments and chunks are read through atomic
// pointers. The race detector rightly sees unsynchronised loads, so under it this does
// nothing.
func Load(probes []Probe) {
	if raceDetector {
		return
	}
	var at [2 * MostProbes]unsafe.Pointer
	touch(at[:findSlots(probes, &at)])
	touch(at[:findRecords(probes, &at)])
}

// findSlots finds the segments of keys and puts down where their slots are. It
// returns how many addresses that makes.
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

// maxProbe is how many slots are looked at: few keys are further from home.
const maxProbe = 8

// findRecords puts down where the records are that the slots lead to: both ends of
// each, which may lie in two cache lines.
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

// Confirm is find for a key that was probed: if there is a record of the number that was
// seen, and it has the key, then it is the one. Otherwise ok is false, and nothing is
// known.
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

// whereabouts returns where a record lies, if there can be one of that number.
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
