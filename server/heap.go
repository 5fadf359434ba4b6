package server

import "math"

// The memory that a server may take with a maxmemory M: eleven tenths of M, and 64 MiB
// for what no client can make grow: the program, its threads and buffers, and garbage.
// What is left of that beside the tables, which are not in Go's heap, is what Go's
// runtime is told to stay within: it would rather collect more often than take more.
const (
	processShare = 64 << 20
	// leastHeap is never taken from Go's runtime, or it would do nothing but collect.
	leastHeap = 32 << 20
	// heapStep is by how much the bound has to move to be worth telling.
	heapStep = 1 << 20
)

// heapBound is how many bytes Go's runtime may take, given maxmemory and what tables
// take outside of its heap. Without maxmemory there is no bound.
func heapBound(maxMemory, outside int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	return max(leastHeap, maxMemory+maxMemory/10+processShare-outside)
}

// boundHeap tells Go's runtime its bound if that has moved.
func (s *Server) boundHeap() {
	if s.limitHeap == nil {
		return
	}
	bound := heapBound(number(s.config.value("maxmemory")), s.keyspace.Outside())
	s.heapMu.Lock()
	defer s.heapMu.Unlock()
	if last := s.heapBound; bound != last && (bound == math.MaxInt64 || last == math.MaxInt64 || max(bound-last, last-bound) >= heapStep) {
		s.heapBound = bound
		s.limitHeap(bound)
	}
}
