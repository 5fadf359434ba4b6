package tracking

import (
	"encoding/binary"
	"sort"
)

// records are the entries of one stripe of the table. An entry is a byte slice with a key and the
// IDs of its readers. Entries of about the same size are in pages without gaps: when an entry is
// removed, the last entry of its size moves to its place. So the garbage collector has few pointers
// to follow, and a random entry can be picked for eviction.
type records struct {
	n       int
	vectors *[len(recordSizes)]vector // the records of each size; nil until the first record
	long    []record                  // records of more than maxRecord bytes
	index   map[uint64]place          // the places of records by the hash of their keys
	// collided has the places of the keys whose hash equals the hash of another key in index. It is
	// almost always empty, and nil until it is needed.
	collided map[string]place
}

// place is the position of a record: vector is the index of its vector, or len(recordSizes) for
// long, and number is the index of the record there.
type place struct{ vector, number uint32 }

// recordSizes are the sizes, in bytes, of the records in each of the vectors.
var recordSizes = [...]int{48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, maxRecord}

const (
	maxRecord = 1024
	// pageRecords is the number of records in a page. It is small, so that a stripe with few keys
	// takes little memory.
	pageRecords = 32
	// indexCost is the approximate memory, in bytes, that a record takes in the index, and for its
	// share of pages that are not full.
	indexCost = 40
)

// vector has the n records of one size, in pages of pageRecords.
type vector struct {
	n     int
	pages [][]byte
}

func (v *vector) at(i uint32, size int) record {
	return v.pages[i/pageRecords][int(i%pageRecords)*size:][:size:size]
}

// extend adds one record of size bytes and returns its index.
func (v *vector) extend(size int) uint32 {
	if v.n == len(v.pages)*pageRecords {
		v.pages = append(v.pages, make([]byte, pageRecords*size))
	}
	v.n++
	return uint32(v.n - 1)
}

// cut removes the last record. It frees a page when the last two pages are empty, so that adding
// and removing a key repeatedly does not allocate a page each time. Without records it frees all
// pages.
func (v *vector) cut() {
	v.n--
	if v.n == 0 {
		v.pages = nil
	} else if last := len(v.pages) - 1; v.n <= (last-1)*pageRecords {
		v.pages[last] = nil
		v.pages = v.pages[:last]
	}
}

// fit returns the index of the vector for records of size bytes; len(recordSizes) if size is above
// maxRecord.
func fit(size int) uint32 { return uint32(sort.SearchInts(recordSizes[:], size)) }

// at returns the record at the place p. The record is valid until the next change of rs.
func (rs *records) at(p place) record {
	if p.vector == uint32(len(recordSizes)) {
		return rs.long[p.number]
	}
	return rs.vectors[p.vector].at(p.number, recordSizes[p.vector])
}

// nth returns the place of the record with the index i among all records. i must be from 0 to
// rs.n-1.
func (rs *records) nth(i int) place {
	for v := range rs.vectors {
		if i < rs.vectors[v].n {
			return place{uint32(v), uint32(i)}
		}
		i -= rs.vectors[v].n
	}
	return place{uint32(len(recordSizes)), uint32(i)}
}

// backward calls f for every record, from the last to the first. f may change or remove the record.
// If it removes the record, the one that moves to its place was visited before. A record that f
// makes smaller may be visited again.
func (rs *records) backward(f func(p place)) {
	for number := len(rs.long) - 1; number >= 0; number-- {
		f(place{uint32(len(recordSizes)), uint32(number)})
	}
	for v := len(recordSizes) - 1; v >= 0 && rs.vectors != nil; v-- {
		for number := rs.vectors[v].n - 1; number >= 0; number-- {
			f(place{uint32(v), uint32(number)})
		}
	}
}

// find returns the place of the record of key, whose hash is hash. is says whether the record
// exists.
func (rs *records) find(hash uint64, key []byte) (p place, is bool) {
	if p, is = rs.index[hash]; is && string(rs.at(p).key()) == string(key) {
		return p, true
	}
	p, is = rs.collided[string(key)]
	return p, is
}

// add adds a record for key, which must have none. The record has the reader id, and the number
// read of its read. cost is the memory of the record in bytes.
func (rs *records) add(hash uint64, key []byte, id int64, read uint64) (cost int64) {
	if rs.vectors == nil {
		rs.vectors, rs.index = new([len(recordSizes)]vector), make(map[uint64]place)
	}
	p, r := rs.extend(headerSize + len(key) + idSize)
	r.begin(hash, key, read)
	r.insert(0, id)
	if _, is := rs.index[hash]; !is {
		rs.index[hash] = p
	} else {
		if rs.collided == nil {
			rs.collided = make(map[string]place)
		}
		rs.collided[string(key)] = p
	}
	rs.n++
	return r.cost()
}

// join adds the reader id to the record at p, and sets the record's number of the latest read to
// read. fresh is false, and nothing changes, if the record has this reader. When the number of
// readers reaches purgeAt, join removes the readers for which alive returns false, as purge does.
// items and cost are the changes of the number of readers and of their memory in bytes. The record
// may move.
func (rs *records) join(p place, id int64, read uint64, alive func(id int64) bool) (fresh bool, items, cost int64) {
	r := rs.at(p)
	i, is := r.search(id)
	if is {
		return false, 0, 0
	}
	cost = -r.cost()
	if r.size()+idSize > len(r) {
		// Long records grow by a quarter, so that they are not copied for each new reader.
		need := r.size() + idSize
		if need > maxRecord {
			need += need / 4
		}
		p = rs.move(p, need)
		r = rs.at(p)
	}
	r.insert(i, id)
	r.setRead(read)
	items, cost = 1, cost+r.cost()
	if r.clients() >= r.purgeAt() {
		gone, saved, _ := rs.purge(p, alive)
		items, cost = items-gone, cost-saved
	}
	return true, items, cost
}

// purge removes the readers for which keep returns false from the record at p, and sets purgeAt to
// twice the number of the others, but at least to purgeFrom. gone is the number of removed readers,
// and saved the memory in bytes that is freed. If no reader is left, empty is true and the record
// stays at p, for the caller to remove. Otherwise the record may move.
func (rs *records) purge(p place, keep func(id int64) bool) (gone, saved int64, empty bool) {
	r := rs.at(p)
	was, cost := r.clients(), r.cost()
	r.purge(keep)
	r.setPurgeAt(max(2*r.clients(), purgeFrom))
	gone = int64(was - r.clients())
	if empty = r.clients() == 0; !empty && gone > 0 && 2*r.size() < len(r) {
		r = rs.at(rs.move(p, r.size()))
	}
	return gone, cost - r.cost(), empty
}

// take removes the record at p and returns its key and readers.
func (rs *records) take(p place) *readers {
	r := rs.at(p)
	taken := &readers{key: string(r.key()), cost: r.cost(), read: r.read()}
	taken.ids = taken.one[:0]
	for i := range r.clients() {
		taken.ids = append(taken.ids, r.id(i))
	}
	if hash := r.hash(); rs.indexed(hash, p) {
		delete(rs.index, hash)
	} else {
		delete(rs.collided, taken.key)
	}
	rs.cut(p)
	if rs.n--; rs.n == 0 {
		*rs = records{} // the maps are replaced, since a map never shrinks
	}
	return taken
}

// extend adds a record of at least size bytes, and returns it with its place. The caller has to set
// its content.
func (rs *records) extend(size int) (place, record) {
	v := fit(size)
	if int(v) == len(recordSizes) {
		r := make(record, size)
		rs.long = append(rs.long, r)
		return place{v, uint32(len(rs.long) - 1)}, r
	}
	p := place{v, rs.vectors[v].extend(recordSizes[v])}
	return p, rs.at(p)
}

// move copies a record to a new one of at least size bytes, removes the old record, and returns the
// place at which the new record is then.
func (rs *records) move(from place, size int) place {
	to, r := rs.extend(size)
	old := rs.at(from)
	copy(r, old[:old.size()])
	rs.point(r, from, to)
	if rs.cut(from) == to { // the record at from was moved into the gap, which is its new place
		return from
	}
	return to
}

// indexed reports whether index has the record at p, whose hash is hash. If not, collided has the
// record.
func (rs *records) indexed(hash uint64, p place) bool {
	at, is := rs.index[hash]
	return is && at == p
}

// point changes the place of r in index or collided. The old place is the parameter from.
func (rs *records) point(r record, from, to place) {
	if hash := r.hash(); rs.indexed(hash, from) {
		rs.index[hash] = to
	} else {
		rs.collided[string(r.key())] = to
	}
}

// cut removes the record at p, to which index and collided no longer refer. The last record of the
// same vector, or of long, moves to p. cut returns the former place of that record; p if the
// removed record was the last.
func (rs *records) cut(p place) (moved place) {
	if int(p.vector) == len(recordSizes) {
		last := place{p.vector, uint32(len(rs.long) - 1)}
		if last != p {
			rs.long[p.number] = rs.long[last.number]
			rs.point(rs.long[p.number], last, p)
		}
		rs.long[last.number] = nil
		rs.long = rs.long[:last.number]
		return last
	}
	v := &rs.vectors[p.vector]
	last := place{p.vector, uint32(v.n - 1)}
	if last != p {
		r := rs.at(p)
		copy(r, rs.at(last))
		rs.point(r, last, p)
	}
	v.cut()
	return last
}

// record is a key and the IDs of its readers, in ascending order:
//
//	hash 8 | read 8 | readers 4 | purge at 4 | length of the key 4 | key | ids of 8
//
// The numbers are sizes in bytes. After the IDs there may be free bytes for more IDs.
type record []byte

const (
	headerSize = 28
	idSize     = 8
)

func (r record) begin(hash uint64, key []byte, read uint64) {
	binary.LittleEndian.PutUint64(r, hash)
	r.setRead(read)
	r.setClients(0)
	r.setPurgeAt(purgeFrom)
	binary.LittleEndian.PutUint32(r[24:], uint32(len(key)))
	copy(r[headerSize:], key)
}

func (r record) hash() uint64        { return binary.LittleEndian.Uint64(r) }
func (r record) read() uint64        { return binary.LittleEndian.Uint64(r[8:]) }
func (r record) setRead(read uint64) { binary.LittleEndian.PutUint64(r[8:], read) }
func (r record) clients() int        { return int(binary.LittleEndian.Uint32(r[16:])) }
func (r record) setClients(n int)    { binary.LittleEndian.PutUint32(r[16:], uint32(n)) }
func (r record) purgeAt() int        { return int(binary.LittleEndian.Uint32(r[20:])) }
func (r record) setPurgeAt(n int)    { binary.LittleEndian.PutUint32(r[20:], uint32(n)) }
func (r record) keyEnd() int         { return headerSize + int(binary.LittleEndian.Uint32(r[24:])) }
func (r record) key() []byte         { return r[headerSize:r.keyEnd()] }

// size returns the number of bytes in use. cost returns the memory of the record in bytes,
// including its free bytes and its share of the index.
func (r record) size() int   { return r.keyEnd() + idSize*r.clients() }
func (r record) cost() int64 { return int64(len(r)) + indexCost }

func (r record) id(i int) int64 {
	return int64(binary.LittleEndian.Uint64(r[r.keyEnd()+idSize*i:]))
}

// search returns in is whether the record has id, and in at the index of id among the IDs, or the
// index at which id has to be inserted.
func (r record) search(id int64) (at int, is bool) {
	n := r.clients()
	at = sort.Search(n, func(i int) bool { return r.id(i) >= id })
	return at, at < n && r.id(at) == id
}

// insert inserts id at the index at. The record must have room for it.
func (r record) insert(at int, id int64) {
	ids, size := r.keyEnd()+idSize*at, r.size()
	copy(r[ids+idSize:], r[ids:size])
	binary.LittleEndian.PutUint64(r[ids:], uint64(id))
	r.setClients(r.clients() + 1)
}

// purge removes the IDs for which keep returns false.
func (r record) purge(keep func(id int64) bool) {
	kept := r.keyEnd()
	for i := range r.clients() {
		if id := r.id(i); keep(id) {
			binary.LittleEndian.PutUint64(r[kept:], uint64(id))
			kept += idSize
		}
	}
	r.setClients((kept - r.keyEnd()) / idSize)
}
