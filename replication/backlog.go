package replication

import "sync/atomic"

const (
	segmentBits = 14
	// segmentSize is the number of bytes of a backlog that are allocated and overwritten
	// together.
	segmentSize = 1 << segmentBits
	// LeastBacklog is the smallest size of a backlog, in bytes. Smaller sizes are raised to
	// LeastBacklog.
	LeastBacklog = segmentSize
	// maxBacklog is the largest size of a backlog: 64 GiB. Larger sizes are lowered to
	// maxBacklog.
	maxBacklog = 64 << 30
)

// Backlog is the replication backlog: a ring buffer with the latest part of a stream. One
// goroutine at a time may write. Any number of goroutines may read at the same time, and the
// writer does not wait for them. A backlog keeps at least the latest size bytes, and less than
// two segments more. It allocates memory as bytes arrive.
//
// Readers take no lock. Each segment has a count of the goroutines that copy from it, and a
// number that changes before the memory of the segment is used again. A reader first increments
// the count and then loads the number. The writer first changes the number and then loads the
// count. So either the reader sees that it was overtaken, or the writer sees the reader and
// allocates other memory.
type Backlog struct {
	base  uint64 // offset of the stream at which segment 0 begins
	first atomic.Uint64
	end   atomic.Uint64
	// table has segment k at index k modulo its length. Only the writer replaces entries.
	table atomic.Pointer[[]atomic.Pointer[segment]]
}

// segment is a part of a backlog, of segmentSize bytes.
type segment struct {
	number  atomic.Int64
	readers atomic.Int32
	bytes   []byte // the bytes, segmentSize of them; allocated separately because that fits a size class of the allocator exactly
}

// noSegment is the number of a segment that must not be read.
const noSegment = -1

// NewBacklog returns an empty backlog for a stream that continues at offset. The backlog keeps at
// least size bytes. A size outside of the range from [LeastBacklog] to 64 GiB is adjusted to that
// range.
func NewBacklog(size int64, offset uint64) *Backlog {
	b := &Backlog{base: offset}
	b.first.Store(offset)
	b.end.Store(offset)
	table := make([]atomic.Pointer[segment], segments(size))
	b.table.Store(&table)
	return b
}

// segments returns the number of segments of a backlog of size bytes, including one more segment,
// which is being filled. It first adjusts size to the range from LeastBacklog to maxBacklog.
func segments(size int64) int {
	return int((min(max(size, LeastBacklog), maxBacklog)+segmentSize-1)/segmentSize) + 1
}

// First returns the offset of the earliest byte in the backlog. The writer may overwrite that
// byte at any time. Any goroutine may call First.
func (b *Backlog) First() uint64 { return b.first.Load() }

// End returns the offset after the latest byte. Any goroutine may call End.
func (b *Backlog) End() uint64 { return b.end.Load() }

// Write appends p to the backlog. If the backlog is full, Write overwrites the earliest bytes.
// Only the writer may call it.
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

// segmentOf returns the number of the segment that has the byte at offset.
func (b *Backlog) segmentOf(offset uint64) int64 { return int64((offset - b.base) >> segmentBits) }

// at returns the segment in the table entry for segment k. It may be an earlier or later segment,
// or nil.
func (b *Backlog) at(k int64) *segment {
	table := *b.table.Load()
	return table[k%int64(len(table))].Load()
}

// open makes segment k, stores it in the table and returns it. It uses the memory of the segment
// that k replaces, unless a goroutine is reading from that segment.
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

// Resize changes the size of the backlog to size bytes. If the backlog shrinks, its earliest
// bytes are dropped. Only the writer may call it.
func (b *Backlog) Resize(size int64) {
	old := *b.table.Load()
	if len(old) == segments(size) {
		return
	}
	table := make([]atomic.Pointer[segment], segments(size))
	k := b.segmentOf(b.end.Load()) // the segment that is being filled, or the next one to be opened
	least := max(b.segmentOf(b.first.Load()), k-int64(len(table))+1)
	b.first.Store(b.base + uint64(least)<<segmentBits)
	for i := least; i <= k; i++ {
		if s := old[i%int64(len(old))].Load(); s != nil && s.number.Load() == i {
			table[i%int64(len(table))].Store(s)
		}
	}
	b.table.Store(&table)
}

// Read copies bytes from offset on into dst. n is the number of bytes copied; it is less than
// len(dst) only if the backlog ends before. If the backlog no longer has the byte at offset, or if
// offset is beyond its end, ok is false and n is 0, but Read may have written to dst. Any goroutine
// may call Read. It takes no lock.
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

// pin prevents the memory of the segment from being used again until unpin. It returns false, and
// pins nothing, if the segment no longer has the number k.
func (s *segment) pin(k int64) bool {
	s.readers.Add(1)
	if s.number.Load() != k {
		s.readers.Add(-1)
		return false
	}
	return true
}

func (s *segment) unpin() { s.readers.Add(-1) }
