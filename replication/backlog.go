package replication

import "sync/atomic"

const (
	segmentBits = 14
	// segmentSize is how many bytes of a backlog are allocated and overwritten together.
	segmentSize = 1 << segmentBits
	// LeastBacklog is the smallest size of a backlog, which is used for less.
	LeastBacklog = segmentSize
	// mostBacklog is the largest, which is used for more: 64 GiB.
	mostBacklog = 64 << 30
)

// Backlog is the latest part of a stream. One goroutine at a time writes; any number read
// meanwhile, and no writer waits for them. It keeps its size of bytes at least, and less
// than two segments more. Memory is allocated as bytes come.
//
// Readers take no lock. A segment counts those who copy from it, and has a number that
// changes before its memory is used again: a reader first counts and then looks at the
// number, the writer first changes the number and then looks at the count. So either the
// reader sees that it was overtaken, or the writer sees the reader and takes other memory.
type Backlog struct {
	base  uint64 // the offset of the first byte ever, which begins segment 0
	first atomic.Uint64
	end   atomic.Uint64
	// table has segment number k at k modulo its length. Only the writer changes it.
	table atomic.Pointer[[]atomic.Pointer[segment]]
}

// segment is a part of a backlog.
type segment struct {
	number  atomic.Int64
	readers atomic.Int32
	bytes   []byte // segmentSize; apart, for the allocator has that size and no larger one
}

// noSegment is the number of a segment that nothing may be read from.
const noSegment = -1

// NewBacklog returns a backlog of size bytes for a stream that goes on at offset.
func NewBacklog(size int64, offset uint64) *Backlog {
	b := &Backlog{base: offset}
	b.first.Store(offset)
	b.end.Store(offset)
	table := make([]atomic.Pointer[segment], segments(size))
	b.table.Store(&table)
	return b
}

// segments is how many segments hold size bytes while another is being filled.
func segments(size int64) int {
	return int((min(max(size, LeastBacklog), mostBacklog)+segmentSize-1)/segmentSize) + 1
}

// First is the offset of the earliest byte there is. It may be gone when it is asked for.
func (b *Backlog) First() uint64 { return b.first.Load() }

// End is the offset behind the latest byte.
func (b *Backlog) End() uint64 { return b.end.Load() }

// Write appends p. Only the writer may call it.
func (b *Backlog) Write(p []byte) {
	end := b.end.Load()
	for len(p) > 0 {
		k := b.segmentOf(end)
		at := int(end-b.base) & (segmentSize - 1)
		var s *segment
		if at == 0 {
			s = b.open(k)
		} else {
			s = b.at(k)
		}
		n := copy(s.bytes[at:], p)
		p, end = p[n:], end+uint64(n)
		b.end.Store(end)
	}
}

func (b *Backlog) segmentOf(offset uint64) int64 { return int64((offset - b.base) >> segmentBits) }

// at returns what is in the place of segment k.
func (b *Backlog) at(k int64) *segment {
	table := *b.table.Load()
	return table[k%int64(len(table))].Load()
}

// open makes segment k, in the memory of the one whose place it takes if nobody reads that.
func (b *Backlog) open(k int64) *segment {
	table := *b.table.Load()
	place := &table[k%int64(len(table))]
	s := place.Load()
	if s != nil {
		b.first.Store(b.base + uint64(k-int64(len(table))+1)<<segmentBits)
		s.number.Store(noSegment)
	}
	if s == nil || s.readers.Load() != 0 {
		s = &segment{bytes: make([]byte, segmentSize)}
	}
	s.number.Store(k)
	place.Store(s)
	return s
}

// Resize makes room for size bytes. What no longer fits is lost, the earliest first. Only
// the writer may call it.
func (b *Backlog) Resize(size int64) {
	old := *b.table.Load()
	if len(old) == segments(size) {
		return
	}
	table := make([]atomic.Pointer[segment], segments(size))
	k := b.segmentOf(b.end.Load()) // the segment that is being filled, or is to be opened next
	least := max(b.segmentOf(b.first.Load()), k-int64(len(table))+1)
	b.first.Store(b.base + uint64(least)<<segmentBits)
	for i := least; i <= k; i++ {
		if s := old[i%int64(len(old))].Load(); s != nil && s.number.Load() == i {
			table[i%int64(len(table))].Store(s)
		}
	}
	b.table.Store(&table)
}

// Read copies what there is from offset on into dst and returns how much that is. It is
// false if the backlog does not reach back to offset any more, or not yet up to it. Then
// dst may have been written to.
func (b *Backlog) Read(dst []byte, offset uint64) (n int, ok bool) {
	end := b.end.Load()
	if offset < b.base || offset > end {
		return 0, false
	}
	for n < len(dst) && offset < end {
		k := b.segmentOf(offset)
		at := int(offset-b.base) & (segmentSize - 1)
		s := b.at(k)
		if s == nil || !s.pin(k) {
			return 0, false
		}
		copied := copy(dst[n:], s.bytes[at:min(segmentSize, uint64(at)+end-offset)])
		s.unpin()
		n, offset = n+copied, offset+uint64(copied)
	}
	return n, true
}

// pin keeps the memory of a segment from being used again, if it still is number k.
func (s *segment) pin(k int64) bool {
	s.readers.Add(1)
	if s.number.Load() != k {
		s.readers.Add(-1)
		return false
	}
	return true
}

func (s *segment) unpin() { s.readers.Add(-1) }
