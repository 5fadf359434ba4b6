package dense

import (
	"sync"
	"sync/atomic"
)

// segment is one page of an index: slots of a hash in the upper half and a record
// number, which is never 0, in the lower.
type segment [segmentSlots]uint64

const segmentSlots = 512

// chunk is a piece of memory that records lie in side by side.
type chunk [chunkSize]byte

const (
	chunkSize = 64 << 10
	pageSize  = 4 << 10
)

// Arena is where the segments and chunks of all tables of a keyspace come from.
// Where the system allows it they are mapped rather than taken from Go's heap: the
// collector does not see them, and what is given back is the system's at once.
type Arena struct {
	mu       sync.Mutex // guards what follows
	segments []*segment // free and zero
	chunks   []*chunk   // free
	source   source
	outside  atomic.Int64 // see Outside
}

// source makes memory in lots and takes single pieces back, of which it may keep
// the address but not the contents.
type source interface {
	moreSegments() []*segment
	moreChunks() []*chunk
	// discard returns whether the piece may be used again, and is zero then.
	discardSegment(*segment) bool
	discardChunk(*chunk) bool
	// outside reports whether all this is outside of Go's heap.
	outside() bool
	close()
}

// NewHeapArena makes one whose memory is Go's own wherever it runs.
func NewHeapArena() *Arena { return &Arena{source: heapSource{}} }

// Mapped reports whether the memory lies outside of Go's heap.
func (a *Arena) Mapped() bool { return a.source.outside() }

// Outside is how many bytes are in use and not in Go's heap; a little of that may not
// have been touched yet.
func (a *Arena) Outside() int64 { return a.outside.Load() }

// segment returns a segment whose slots are all 0. Like Go's own allocator it does
// not return when there is no memory.
func (a *Arena) segment() *segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.segments) == 0 {
		a.segments = a.source.moreSegments()
	}
	s := a.segments[len(a.segments)-1]
	a.segments = a.segments[:len(a.segments)-1]
	a.count(pageSize)
	return s
}

// chunk returns a chunk.
func (a *Arena) chunk() *chunk {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.chunks) == 0 {
		a.chunks = a.source.moreChunks()
	}
	c := a.chunks[len(a.chunks)-1]
	a.chunks = a.chunks[:len(a.chunks)-1]
	a.count(chunkSize)
	return c
}

func (a *Arena) freeSegment(s *segment) {
	a.count(-pageSize)
	if !a.source.discardSegment(s) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.segments = append(a.segments, s)
}

func (a *Arena) freeChunk(c *chunk) {
	a.count(-chunkSize)
	if !a.source.discardChunk(c) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.chunks = append(a.chunks, c)
}

func (a *Arena) count(n int64) {
	if a.source.outside() {
		a.outside.Add(n)
	}
}

// Close gives everything back. No table of the arena may be used afterwards.
func (a *Arena) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.segments, a.chunks = nil, nil
	a.source.close()
}

// heapSource takes memory from Go's heap, one piece at a time, and leaves it to the
// collector.
type heapSource struct{}

func (heapSource) moreSegments() []*segment     { return []*segment{new(segment)} }
func (heapSource) moreChunks() []*chunk         { return []*chunk{new(chunk)} }
func (heapSource) discardSegment(*segment) bool { return false }
func (heapSource) discardChunk(*chunk) bool     { return false }
func (heapSource) outside() bool                { return false }
func (heapSource) close()                       {}
