package server

import (
	"math"
	"sync"
)

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

// leastFreed is how much of Go's heap keys have to give up to be worth a collection of
// its own, and freedShare what part of what they had.
const (
	leastFreed = 16 << 20
	freedShare = 4
)

// freedHeap follows what keys take of Go's heap: large collections and long values. The
// runtime collects when something is allocated, and what answers commands allocates
// nothing: without a nudge the memory of a deleted collection would stay for minutes.
type freedHeap struct {
	mu   sync.Mutex
	peak int64 // guarded by mu
}

// due reports whether enough has been freed since the last time that it was.
func (f *freedHeap) due(now int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	peak := max(f.peak, now)
	freed := peak - now
	if freed < leastFreed || freed < peak/freedShare {
		f.peak = peak
		return false
	}
	f.peak = now
	return true
}

// returnHeap has Go's runtime give back what keys no longer need of its heap.
func (s *Server) returnHeap() {
	if s.freed.due(s.keyspace.InHeap()) && s.freeHeap != nil {
		s.freeHeap()
	}
}
