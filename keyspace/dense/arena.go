package dense

import (
	"sync"
	"sync/atomic"
)

// segment is one page of an index. A slot has a hash in its upper half and a record number, which
// is never 0, in its lower half. A free slot is 0.
type segment [segmentSlots]uint64

const segmentSlots = 512

// chunk is a piece of memory with records of one size class, side by side.
type chunk [chunkSize]byte

const (
	chunkSize = 64 << 10
	pageSize  = 4 << 10
)

// Arena provides the segments and chunks of all tables of a keyspace. On Linux they are mapped
// memory outside of Go's heap: the garbage collector does not scan them, and freed memory is
// returned to the system at once. Any goroutine may use an arena.
type Arena struct {
	mu       sync.Mutex // guards segments, chunks and source
	segments []*segment // free segments, whose slots are all 0
	chunks   []*chunk   // free chunks
	source   source
	outside  atomic.Int64 // bytes that the arena has mapped outside of Go's heap: see [Arena.Outside]
}

// source provides memory in batches and takes back single pieces. After a piece was taken back, its
// address may be used again, but its contents are lost.
type source interface {
	moreSegments() []*segment
	moreChunks() []*chunk
	// The discard methods take back a piece and report whether it may be used again. All its bytes
	// are 0 then.
	discardSegment(*segment) bool
	discardChunk(*chunk) bool
	// outside reports whether the memory is outside of Go's heap.
	outside() bool
	// close frees all memory that the source has provided.
	close()
}

// NewHeapArena returns an arena whose memory is in Go's heap, on every system.
func NewHeapArena() *Arena { return &Arena{source: heapSource{}} }

// Mapped reports whether the memory of the arena is mapped outside of Go's heap.
func (a *Arena) Mapped() bool { return a.source.outside() }

// Outside returns the number of bytes of the arena that are in use and outside of Go's heap. Some
// of them may not have been touched yet, and so take no memory.
func (a *Arena) Outside() int64 { return a.outside.Load() }

// segment returns a segment whose slots are all 0. It panics if there is no memory, just as Go's
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

// chunk returns a chunk with undefined contents. It panics if there is no memory.
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

// freeSegment takes back a segment that segment has returned.
func (a *Arena) freeSegment(s *segment) {
	a.count(-pageSize)
	if !a.source.discardSegment(s) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.segments = append(a.segments, s)
}

// freeChunk takes back a chunk that chunk has returned.
func (a *Arena) freeChunk(c *chunk) {
	a.count(-chunkSize)
	if !a.source.discardChunk(c) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.chunks = append(a.chunks, c)
}

// count adds n bytes to outside, unless the memory is in Go's heap.
func (a *Arena) count(n int64) {
	if a.source.outside() {
		a.outside.Add(n)
	}
}

// Close frees all memory of the arena. Neither the arena nor a table that uses it may be used
// afterwards.
func (a *Arena) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.segments, a.chunks = nil, nil
	a.source.close()
}

// heapSource is a source that takes single pieces from Go's heap and leaves discarded ones to the
// garbage collector.
type heapSource struct{}

func (heapSource) moreSegments() []*segment     { return []*segment{new(segment)} }
func (heapSource) moreChunks() []*chunk         { return []*chunk{new(chunk)} }
func (heapSource) discardSegment(*segment) bool { return false }
func (heapSource) discardChunk(*chunk) bool     { return false }
func (heapSource) outside() bool                { return false }
func (heapSource) close()                       {}
