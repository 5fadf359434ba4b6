package dense

import "sync/atomic"

// vector has the records of one size class side by side. A new record is appended. When a record is
// removed, the last record moves into its place, so that there is never a gap.
type vector struct {
	chunks []*chunk
	n      uint32 // number of records in use
	// high is the number of records whose memory has been touched since it was mapped or last
	// returned to the system; pages is the number of pages of these records.
	high  uint32
	pages uint32
	// seen has the chunks for [Load], which reads them without the lock. It may be longer than
	// chunks; then it has nil for each chunk that was freed.
	seen atomic.Pointer[[]*chunk]
}

// record returns the bytes of the record with the given number. c is the class of the vector.
func (v *vector) record(c *sizeClass, number uint32) []byte {
	place := number & placeMask
	off := place & c.mask * c.size
	return v.chunks[place>>c.bits][off : off+c.size : off+c.size]
}

// full reports whether no record number is left for another record of the class c.
func (v *vector) full(c *sizeClass) bool { return v.n/c.per > placeMask>>c.bits }

// push adds a record with undefined contents to the vector of the given class and returns the
// record's number.
func (v *vector) push(class uint32, a *Arena, m *Memory) uint32 {
	c := &classes[class]
	if int(v.n/c.per) == len(v.chunks) {
		v.chunks = append(v.chunks, a.chunk())
		seen := v.chunks
		v.seen.Store(&seen)
	}
	number := c.number(class, v.n)
	v.n++
	if v.n > v.high {
		v.high = v.n
		v.account(c, m)
	}
	return number
}

// pop removes the last record, and frees the last chunk if it is no longer needed. An empty chunk
// is kept while the chunk before it is more than half full, so that a vector whose length varies
// does not take and free memory all the time. The only chunk of an empty vector is kept if at most
// one page of it was touched.
func (v *vector) pop(c *sizeClass, a *Arena, m *Memory) {
	v.n--
	need := int((v.n + c.per - 1) / c.per)
	if len(v.chunks) == need {
		return
	}
	if need == 0 && v.pages <= 1 {
		return
	}
	if need > 0 && (v.n-1)%c.per >= c.per/2 {
		return
	}
	last := len(v.chunks) - 1
	a.freeChunk(v.chunks[last])
	v.chunks[last] = nil
	v.chunks = v.chunks[:last]
	v.high = min(v.high, uint32(last)*c.per)
	v.account(c, m)
}

// account counts in m by how much the number of touched pages has changed, and updates v.pages.
func (v *vector) account(c *sizeClass, m *Memory) {
	pages := v.high / c.per * (chunkSize / pageSize)
	pages += (v.high%c.per*c.size + pageSize - 1) / pageSize
	if pages != v.pages {
		m.Add((int64(pages) - int64(v.pages)) * pageSize)
		v.pages = pages
	}
}

// free frees all chunks and empties the vector.
func (v *vector) free(c *sizeClass, a *Arena, m *Memory) {
	for _, ch := range v.chunks {
		a.freeChunk(ch)
	}
	v.chunks, v.n, v.high = nil, 0, 0
	v.account(c, m)
}
