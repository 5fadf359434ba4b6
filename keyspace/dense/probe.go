package dense

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Probe has the hash of a key that is about to be looked up, and what [Load] has found out about
// the key without a lock. The caller sets Hash and Table.
type Probe struct {
	Hash  uint64   // hash of the key; the table uses its lower half
	Table *Table   // table of the key; nil if there is no table yet
	slots *segment // segment of the index in which the key may be; nil if there is no table
	// number is the number of the record that the key probably has, or 0.
	number uint32
}

// MostProbes is the maximum number of keys that one call of [Load] loads. It is larger than the
// number of loads that a processor has in flight at a time.
const MostProbes = 32

// Load loads the memory of the keys of probes, at most MostProbes, so that the next commands find
// it in the processor's caches. The lookup of one key waits for two loads that depend on each
// other; in Load the loads of many keys overlap. Load fills in the probes for [Table.Confirm].
//
// Load takes no lock, so it may read a table while another goroutine changes it. Its results are
// only hints. Reading is safe for two reasons. Pages are never unmapped before the arena is closed;
// memory that is returned to the system keeps its address. The lists of segments and chunks are
// read through atomic pointers. The race detector rightly reports unsynchronized loads, so Load
// does nothing in a program built with the race detector.
func Load(probes []Probe) {
	if raceDetector {
		return
	}
	var at [2 * MostProbes]unsafe.Pointer
	touch(at[:findSlots(probes, &at)])
	touch(at[:findRecords(probes, &at)])
}

// findSlots finds the segments of the keys of probes, and stores the addresses of the keys' home
// slots in at. It returns the number of addresses.
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

// maxProbe is the number of slots of a key that findRecords examines. Few keys are further from
// their home slot.
const maxProbe = 8

// findRecords finds the records that the keys of probes probably have. It stores in at the
// addresses of both ends of each record, since a record may lie in two cache lines. It returns the
// number of addresses.
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

// Confirm returns what [Table.Find] returns, for a key whose probe p was passed to [Load]. If the
// table has a record with the number that Load has found, and the record has the key, that is the
// right record. Otherwise ok is false, and the caller has to call Find.
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

// whereabouts returns ch, the chunk of the record with the given number, and off and size, the
// record's offset and size in bytes. ch is nil if there can be no such record. It may be called
// without the lock.
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

// live reports whether the table has a record with the given number.
func (t *Table) live(number uint32) bool {
	class := number >> placeBits
	if class >= numClasses {
		return false
	}
	c, place := &classes[class], number&placeMask
	return place&c.mask < c.per && uint64(place>>c.bits)*uint64(c.per)+uint64(place&c.mask) < uint64(t.vectors[class].n)
}
