package dense

import (
	"sync"
	"sync/atomic"
)

// segment is one page of an index. A slot has a hash in its upper half and a record number, which
// is never 0, in its lower half.
type segment [segmentSlots]uint64

const segmentSlots = 512

// chunk is a piece of memory in which records lie side by side.
type chunk [chunkSize]byte

const (
	chunkSize = 64 << 10
	pageSize  = 4 << 10
)

// Arena provides the segments and chunks of all tables of a keyspace. Where the system allows it
// they are mapped rather than taken from Go's heap: then the garbage collector does not scan them,
// and freed memory is returned to the system at once.
type Arena struct {
	mu       sync.Mutex // guards what follows
	segments []*segment // free and zero
	chunks   []*chunk   // free
	source   source
	outside  atomic.Int64 // see Outside
}

// source makes memory in batches and takes single pieces back. It may keep the address of a piece
// but not the contents.
type source interface {
	moreSegments() []*segment
	moreChunks() []*chunk
	// The discard methods return whether the piece may be used again; it is zero then.
	discardSegment(*segment) bool
	discardChunk(*chunk) bool
	// outside reports whether all this is outside of Go's heap.
	outside() bool
	close()
}

// NewHeapArena returns an arena in Go's heap, on every system.
func NewHeapArena() *Arena { return &Arena{source: heapSource{}} }

// Mapped reports whether the memory lies outside of Go's heap.
func (a *Arena) Mapped() bool { return a.source.outside() }

// Outside returns the number of bytes that are in use and not in Go's heap; some of them may not
// have been touched yet.
func (a *Arena) Outside() int64 { return a.outside.Load() }

// segment returns a segment whose slots are all 0. It panics when there is no memory, as Go's own
// allocator ends the process.
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

// Close frees all memory. No table of the arena may be used afterwards.
func (a *Arena) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.segments, a.chunks = nil, nil
	a.source.close()
}

// heapSource takes single pieces from Go's heap and leaves them to the garbage collector.
type heapSource struct{}

func (heapSource) moreSegments() []*segment     { return []*segment{new(segment)} }
func (heapSource) moreChunks() []*chunk         { return []*chunk{new(chunk)} }
func (heapSource) discardSegment(*segment) bool { return false }
func (heapSource) discardChunk(*chunk) bool     { return false }
func (heapSource) outside() bool                { return false }
func (heapSource) close()                       {}
