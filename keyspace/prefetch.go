package keyspace

import (
	"bytes"
	"unsafe"
)

// Prefetch loads the memory that the keys of db lie in, so that what is done with
// them next finds it in the processor's caches. Looking up one key waits for two
// loads that depend on each other; here those of many keys wait together. The keys
// must stay what they are until [View.Leave].
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
	for len(keys) > maxPrefetch {
		v.load(db, keys[:maxPrefetch], nil)
		keys = keys[maxPrefetch:]
	}
	v.load(db, keys, nil)
}

// maxPrefetch is how many keys are loaded together: more loads than a processor
// keeps in flight.
const maxPrefetch = 32

// known are the keys of the last Prefetch, in the order in which they were given,
// which is that in which they are used.
type known struct {
	next, n int
	db      int
	keys    [maxPrefetch]knownKey
}

// knownKey is what Prefetch has found out about a key.
type knownKey struct {
	at    *byte
	size  int
	hash  uint64
	slots *segment // where in the index it may be; nil if there is nothing
	table *denseTable
	// number is that of the record that it probably has.
	number uint32
}

// hash returns the hash of key, which Prefetch may have worked out already.
func (v *View) hash(key []byte) uint64 {
	if k := &v.known; k.next < k.n {
		if a := &k.keys[k.next]; a.at == unsafe.SliceData(key) && a.size == len(key) {
			k.next++
			return a.hash
		}
	}
	return v.ks.hash(key)
}

// find is [shard.find], which it spares where Prefetch has found the record: if there
// is a record of that number in the table, and it has the key, then it is the one.
func (v *View) find(s *shard, p *place, db int, h uint64, key []byte) {
	k := &v.known.keys[uint(v.known.next-1)%maxPrefetch]
	if k.hash == h && k.number != 0 && v.known.n > 0 && v.known.db == db {
		if t, _ := s.dbs[db].t.(*denseTable); t != nil && t == k.table && t.live(k.number) {
			rec := t.record(k.number)
			if name, value := t.parts(rec); bytes.Equal(name, key) {
				p.db, p.hash = db, uint32(h)
				p.fill(s, ref(k.number), Kind(header(rec)&headKind), expiry(rec), value)
				if p.e.Kind == None && s.by != nil && p.stale() {
					s.by.saw(db, h, key)
				}
				return
			}
		}
	}
	s.find(p, db, h, key)
}

// load is Prefetch for maxPrefetch keys at most. hashes are theirs, nil if they have to
// be worked out.
func (v *View) load(db int, keys [][]byte, hashes []uint64) {
	var at [2 * maxPrefetch]unsafe.Pointer
	k := &v.known
	k.next, k.n, k.db = 0, len(keys), db
	touch(at[:k.findSlots(v.ks, &at, keys, hashes)])
	touch(at[:k.findRecords(&at)])
}

// findSlots finds the segments of keys and puts down where their slots are. It
// returns how many addresses that makes.
func (k *known) findSlots(ks *Keyspace, at *[2 * maxPrefetch]unsafe.Pointer, keys [][]byte, hashes []uint64) (n int) {
	for i, key := range keys {
		var h uint64
		if hashes == nil {
			h = ks.hash(key)
		} else {
			h = hashes[i]
		}
		p := &k.keys[i]
		*p = knownKey{at: unsafe.SliceData(key), size: len(key), hash: h, table: ks.shards[h>>ks.shift].seen[k.db].Load()}
		if p.table == nil {
			continue
		}
		leaves := *p.table.index.seen.Load()
		// The number of leaves is a power of two, so this is hash >> shift.
		p.slots = leaves[uint64(uint32(h))*uint64(len(leaves))>>32].slots
		at[n] = unsafe.Pointer(&p.slots[h&slotMask])
		n++
	}
	return n
}

// maxProbe is how many slots are looked at: few keys are further from home.
const maxProbe = 8

// findRecords puts down where the records are that the slots lead to: both ends of
// each, which may lie in two cache lines.
func (k *known) findRecords(at *[2 * maxPrefetch]unsafe.Pointer) (n int) {
	for i := range k.keys[:k.n] {
		p := &k.keys[i]
		if p.slots == nil {
			continue
		}
		hash := uint32(p.hash)
		for j := range uint32(maxProbe) {
			s := p.slots[(hash+j)&slotMask]
			if s == 0 {
				break
			}
			if slotHash(s) == hash {
				p.number = slotNumber(s)
				if ch, off, size := p.table.whereabouts(p.number); ch != nil {
					at[n], at[n+1] = unsafe.Pointer(&ch[off]), unsafe.Pointer(&ch[off+size-1])
					n += 2
				}
				break
			}
		}
	}
	return n
}

// whereabouts returns where a record lies, if there can be one of that number.
func (t *denseTable) whereabouts(number uint32) (ch *chunk, off, size uint32) {
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
func (t *denseTable) live(number uint32) bool {
	class := number >> placeBits
	if class >= numClasses {
		return false
	}
	c, place := &classes[class], number&placeMask
	return place&c.mask < c.per && uint64(place>>c.bits)*uint64(c.per)+uint64(place&c.mask) < uint64(t.vectors[class].n)
}
