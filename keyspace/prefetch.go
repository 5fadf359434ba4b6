package keyspace

// Prefetch loads the memory that the keys of db lie in, so that what is done with
// them next finds it in the processor's caches. Looking up one key waits for two
// loads that depend on each other; here those of many keys wait together.
//
// It takes no lock, so it may see a table while that changes, and it believes
// nothing of what it sees: it only loads. That is safe because pages are never
// unmapped before Close (what is given back to the system keeps its address), and
// because the lists of segments and chunks are read through atomic pointers. The
// race detector rightly sees unsynchronised loads, so under it this does nothing.
func (v *View) Prefetch(db int, keys [][]byte) {
	if raceDetector {
		return
	}
	var spots [maxPrefetch]spot
	for len(keys) > 0 {
		n := min(len(keys), maxPrefetch)
		v.touched += v.loadSlots(spots[:n], db, keys) + loadRecords(spots[:n])
		keys = keys[n:]
	}
}

// maxPrefetch is how many keys are loaded together: more loads than a processor
// keeps in flight.
const maxPrefetch = 32

// spot is where in an index a key may be.
type spot struct {
	table *denseTable
	slots *segment // nil if there is nothing
	hash  uint32
}

// loadSlots finds the spots of the first keys and loads their slots.
func (v *View) loadSlots(spots []spot, db int, keys [][]byte) (sum uint64) {
	ks := v.ks
	for i := range spots {
		p := &spots[i]
		h := ks.hash(keys[i])
		p.table, p.hash = ks.shards[h>>ks.shift].seen[db].Load(), uint32(h)
		if p.slots = nil; p.table == nil {
			continue
		}
		leaves := *p.table.index.seen.Load()
		// The number of leaves is a power of two, so this is hash >> shift.
		p.slots = leaves[uint64(p.hash)*uint64(len(leaves))>>32].slots
		sum += p.slots[p.hash&slotMask]
	}
	return sum
}

// maxProbe is how many slots are looked at: few keys are further from home.
const maxProbe = 8

// loadRecords loads the records that the spots lead to.
func loadRecords(spots []spot) (sum uint64) {
	for i := range spots {
		p := &spots[i]
		if p.slots == nil {
			continue
		}
		for k := range uint32(maxProbe) {
			s := p.slots[(p.hash+k)&slotMask]
			if s == 0 {
				break
			}
			if slotHash(s) == p.hash {
				sum += p.table.load(slotNumber(s))
				break
			}
		}
	}
	return sum
}

// load loads both ends of a record, which may lie in two cache lines.
func (t *denseTable) load(number uint32) uint64 {
	class := number >> placeBits
	if class >= numClasses {
		return 0
	}
	chunks, c := t.vectors[class].seen.Load(), &classes[class]
	place := number & placeMask
	if chunks == nil || int(place>>c.bits) >= len(*chunks) {
		return 0
	}
	ch, off := (*chunks)[place>>c.bits], place&c.mask*c.size
	if ch == nil || off+c.size > chunkSize {
		return 0
	}
	return uint64(ch[off]) + uint64(ch[off+c.size-1])
}
