package server

import (
	"math"
	"runtime/metrics"
)

// The memory that a server may take with a maxmemory M: eleven tenths of M, and 64 MiB
// for what no client can make grow: the program, its threads and buffers, and garbage.
// What is left of that beside the tables, which are not in Go's heap, is what Go's
// runtime is told to stay within: it would rather collect more often than take more.
const (
	processShare = 64 << 20
	// programShare is what of that is not in Go's heap: the program's own pages, its
	// threads, and what the kernel counts with them.
	programShare = 20 << 20
	// Go's heap may exceed its bound while a collection runs. The runtime aims to stay within
	// eleven tenths of it, and the bound leaves room for that, up to mostOvershoot: most of a
	// large heap is values without pointers, which make a collection no longer.
	overshootShare = 11
	mostOvershoot  = 32 << 20
	// leastHeap is never taken from Go's runtime, or it would do nothing but collect.
	leastHeap = 32 << 20
	// scriptSpare is what scripts leave of that for what is no object: stacks, buffers,
	// the runtime's own tables, and room between objects.
	scriptSpare = 16 << 20
	// heapStep is by how much the bound has to move to be worth telling.
	heapStep = 1 << 20
)

// heapBound is how many bytes Go's runtime may take, given maxmemory and what tables
// take outside of its heap. Without maxmemory there is no bound.
func heapBound(maxMemory, outside int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	room := maxMemory + maxMemory/10 + processShare - programShare - outside
	return max(leastHeap, room-min(room/overshootShare, mostOvershoot))
}

// boundHeap tells Go's runtime its bound if that has moved.
func (s *Server) boundHeap() {
	if s.limitHeap == nil {
		return
	}
	bound := heapBound(s.maxMemory.Load(), s.keyspace.Outside())
	s.heapMu.Lock()
	defer s.heapMu.Unlock()
	if last := s.heapBound; bound != last && (bound == math.MaxInt64 || last == math.MaxInt64 || max(bound-last, last-bound) >= heapStep) {
		s.heapBound = bound
		s.limitHeap(bound)
	}
}

// scriptRoom is how many bytes of objects Go's heap may have while scripts run, and how
// many of them are kept for keys.
func (s *Server) scriptRoom() (bound, kept int64) {
	kept = s.keyspace.InHeap()
	m := s.maxMemory.Load()
	if m <= 0 || s.freeHeap == nil {
		return math.MaxInt64, kept
	}
	return heapBound(m, s.keyspace.Outside()) - scriptSpare, kept
}

// leastFreed is how much of Go's heap keys have to give up to be worth a collection of
// its own, and freedShare what part of what they had.
const (
	leastFreed = 16 << 20
	freedShare = 4
)

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

// After so many looks without a collection, leastIdle bytes that are garbage or free
// are a burst's leftovers: replies and commands of many clients at once.
const (
	quietLooks = 5
	leastIdle  = 32 << 20
)

// due reports whether so many idle bytes, after so many cycles of collection, have
// been left alone for long enough. What keys and clients hold less than they did since
// the last cycle is idle too: by then it was in use.
func (q *quietHeap) due(cycles uint64, idle, held int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.last
	q.last = held
	if cycles != q.cycles {
		// It was between the two looks, and of what was held then it freed nothing.
		q.cycles, q.held, q.quiet = cycles, max(last, held), 0
		return false
	}
	q.held = max(q.held, held)
	if idle+q.held-held < leastIdle {
		q.quiet = 0
		return false
	}
	q.quiet++
	if q.quiet < quietLooks {
		return false
	}
	q.quiet = 0
	return true
}

// idleHeap returns how many collections there were, and what has become of Go's heap
// since the last one that is of no use: new objects, which may be garbage by now, and
// memory that is free and still ours.
func idleHeap() (cycles uint64, idle int64) {
	const ofCycles, ofObjects, ofLive, ofFree = 0, 1, 2, 3
	all := []metrics.Sample{
		ofCycles:  {Name: "/gc/cycles/total:gc-cycles"},
		ofObjects: {Name: "/memory/classes/heap/objects:bytes"},
		ofLive:    {Name: "/gc/heap/live:bytes"},
		ofFree:    {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(all)
	var values [4]uint64
	for i, m := range all {
		if m.Value.Kind() != metrics.KindUint64 {
			return 0, 0 // this runtime does not say
		}
		values[i] = m.Value.Uint64()
	}
	since := max(values[ofObjects], values[ofLive]) - values[ofLive]
	return values[ofCycles], int64(since + values[ofFree])
}

// clientMemory is what waits between clients and commands, in bytes.
func (s *Server) clientMemory() int64 {
	t := s.transport.Stats()
	return t.Pending + t.Unread + s.engine.Beside()
}

// besideKeys is what counts against maxmemory beside the keys: what clients take, but for
// large replies that fit in what the process may take beyond it.
func (s *Server) besideKeys() int64 {
	beside, most := s.clientMemory(), s.maxMemory.Load()
	if bound, _ := s.scriptRoom(); most > 0 && bound != math.MaxInt64 {
		beside -= min(s.engine.LargeReplies(), max(bound-most, 0))
	}
	return beside
}

// returnHeap has Go's runtime give back what keys and clients no longer need of its
// heap.
func (s *Server) returnHeap() {
	if s.freeHeap == nil {
		return
	}
	keys := s.keyspace.InHeap()
	cycles, idle := idleHeap()
	freed := s.freed.due(keys)
	if quiet := s.quiet.due(cycles, idle, keys+s.clientMemory()); freed || quiet {
		s.freeHeap()
	}
}
