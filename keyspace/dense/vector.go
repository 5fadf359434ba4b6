package dense

import "sync/atomic"

// vector holds the records of one class side by side: a new record goes to the end
// and the last one fills the place of one that is removed, so that there is never
// a hole.
type vector struct {
	chunks []*chunk
	n      uint32
	// high is the number of records whose memory has been touched, which the system
	// has given us, as far as it was not given back; pages is that in pages.
	high  uint32
	pages uint32
	// seen is chunks for [Load], which reads without the lock: never
	// shorter than what it may look for, with nil for a chunk that is gone.
	seen atomic.Pointer[[]*chunk]
}

// record returns the bytes of a record.
func (v *vector) record(c *sizeClass, number uint32) []byte {
	place := number & placeMask
	off := place & c.mask * c.size
	return v.chunks[place>>c.bits][off : off+c.size : off+c.size]
}

// full reports whether no number is left for another record.
func (v *vector) full(c *sizeClass) bool { return v.n/c.per > placeMask>>c.bits }

// push makes room for one more record and returns its number.
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

// pop takes the last record away and gives a chunk back that is not needed. One is
// kept in reserve as long as its neighbour is more than half full, so that a vector
// whose end goes back and forth does not map and unmap all the time; and one alone
// if only a page of it was touched.
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

// account tells m how many pages are touched.
func (v *vector) account(c *sizeClass, m *Memory) {
	pages := v.high / c.per * (chunkSize / pageSize)
	pages += (v.high%c.per*c.size + pageSize - 1) / pageSize
	if pages != v.pages {
		m.Add((int64(pages) - int64(v.pages)) * pageSize)
		v.pages = pages
	}
}

// free gives all chunks back.
func (v *vector) free(c *sizeClass, a *Arena, m *Memory) {
	for _, ch := range v.chunks {
		a.freeChunk(ch)
	}
	v.chunks, v.n, v.high = nil, 0, 0
	v.account(c, m)
}
