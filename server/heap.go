package server

import (
	"math"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// heap has the state by which a server sets the bound of Go's heap and returns memory to the
// system.
type heap struct {
	limitHeap func(int64) int64
	heapSize  func() int64
	freeHeap  func()
	longInput longInput
	freed     freedHeap
	quiet     quietHeap
	maxMemory atomic.Int64
	heapMu    sync.Mutex
	heapBound int64 // the last value passed to limitHeap; guarded by heapMu
}

// With a maxmemory of M bytes the server may take 1.1 M, and 64 MiB for memory that clients cannot
// increase: the program, its threads and buffers, and garbage. The hash tables of the keyspace are
// not in Go's heap. The server passes what is left as the memory limit of Go's runtime, which
// collects more often near the limit instead of taking more memory.
const (
	processShare = 64 << 20
	// programShare is the part of the 64 MiB that is not in Go's heap: the pages of the program,
	// its threads, and memory that the kernel counts as theirs.
	programShare = 20 << 20
	// overshootShare and maxOvershoot determine the room for exceeding the bound: Go's heap may
	// exceed it while a collection runs. The runtime aims to stay within 1.1 times the bound, but
	// 1.16 times was measured when other goroutines took processor time from the collector. So the
	// bound leaves 1/overshootShare of the memory, up to maxOvershoot bytes. A fixed maximum is
	// enough, because most of a large heap is values without pointers, which do not prolong a
	// collection.
	overshootShare = 7
	maxOvershoot   = 48 << 20
	// minHeap is the smallest bound. With a smaller one the runtime would do little else than
	// collect.
	minHeap = 32 << 20
	// scriptSpare is the part of the heap's bound that scripts must leave for memory outside of
	// objects: stacks, buffers, the tables of the runtime, and gaps between objects.
	scriptSpare = 16 << 20
	// heapStep is the smallest change of the bound in bytes that is passed to the runtime.
	heapStep = 1 << 20
)

// heapBound returns how many bytes Go's runtime may take. outside is the number of bytes of tables
// and input outside of its heap. If maxMemory is 0, there is no bound, and the result is
// math.MaxInt64.
func heapBound(maxMemory, outside int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	room := maxMemory + maxMemory/10 + processShare - programShare - outside
	return max(minHeap, room-min(room/overshootShare, maxOvershoot))
}

// userShare is the fraction 1/userShare of maxmemory that users may take by ACL SETUSER, and
// minUsers the number of bytes that they may take with any maxmemory.
const (
	userShare = 10
	minUsers  = 1 << 20
)

// userBound returns how many bytes users may take by ACL SETUSER. If maxMemory is 0, it is
// math.MaxInt64, and only the bound of package acl applies.
func userBound(maxMemory int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	return max(maxMemory/userShare, minUsers)
}

// outsideHeap returns how many bytes outside of Go's heap are taken by tables now, and by long
// input at most in this second.
func (s *Server) outsideHeap() int64 { return s.keyspace.Outside() + s.longInput.most.Load() }

// boundHeap computes the bound of Go's heap, and passes it to the runtime if it has changed by
// heapStep or more. It does nothing without limitHeap. Any goroutine may call it.
func (s *Server) boundHeap() {
	if s.limitHeap == nil {
		return
	}
	bound := heapBound(s.maxMemory.Load(), s.outsideHeap())
	s.heapMu.Lock()
	defer s.heapMu.Unlock()
	if last := s.heapBound; bound != last && (bound == math.MaxInt64 || last == math.MaxInt64 || max(bound-last, last-bound) >= heapStep) {
		s.heapBound = bound
		s.limitHeap(bound)
	}
}

// scriptRoom returns how many bytes of objects Go's heap may have while scripts run, and how many
// of them belong to keys. bound is math.MaxInt64 without maxmemory. scriptRoom implements
// [lua.Limits].Room.
func (s *Server) scriptRoom() (bound, kept int64) {
	kept = s.keyspace.InHeap()
	m := s.maxMemory.Load()
	if m <= 0 || s.freeHeap == nil {
		return math.MaxInt64, kept
	}
	return heapBound(m, s.outsideHeap()) - scriptSpare, kept
}

// minFreed is the minimum number of bytes that keys must have freed in Go's heap for a collection
// to be worthwhile. They must also have freed the fraction 1/freedShare of their peak.
const (
	minFreed   = 16 << 20
	freedShare = 4
)

// freedHeap records how many bytes keys take in Go's heap, for large collections and long values.
// The runtime collects only when memory is allocated, and answering commands allocates nothing.
// Without an explicit collection, the memory of a deleted collection would stay allocated for
// minutes.
type freedHeap struct {
	mu   sync.Mutex
	peak int64 // guarded by mu
}

// due reports whether keys, which take now bytes, have freed enough memory since the last call that
// returned true. It advances the peak.
func (f *freedHeap) due(now int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	peak := max(f.peak, now)
	freed := peak - now
	if freed < minFreed || freed < peak/freedShare {
		f.peak = peak
		return false
	}
	f.peak = now
	return true
}

// quietLooks is the number of checks without a collection after which minIdle bytes of garbage or
// free memory are returned to the system. They are the rest of a burst, such as replies and
// commands of many clients at once.
const (
	quietLooks = 5
	minIdle    = 32 << 20
)

// quietHeap records the idle memory in Go's heap while the runtime does not collect.
type quietHeap struct {
	mu     sync.Mutex
	cycles uint64 // guarded by mu, as are the fields below
	held   int64  // the maximum of what keys and clients held, from the check before the last collection on
	last   int64  // what keys and clients held at the last check
	quiet  int    // the number of checks in sequence that found enough idle memory
}

// due reports whether minIdle bytes have been idle for quietLooks checks. cycles is the number of
// collections so far, idle the number of idle bytes in the heap, and held the number of bytes that
// keys and clients hold. Memory that keys and clients have freed since the last collection counts
// as idle, too, since it was in use when the collection ran.
func (q *quietHeap) due(cycles uint64, idle, held int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.last
	q.last = held
	if cycles != q.cycles {
		// The collection ran between the last check and this one. It freed none of the memory that
		// was held then.
		q.cycles, q.held, q.quiet = cycles, max(last, held), 0
		return false
	}
	q.held = max(q.held, held)
	if idle+q.held-held < minIdle {
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

// idleHeap returns the number of collections so far, and the bytes of Go's heap that have become
// idle since the last one: new objects, which may be garbage, and free memory that the process
// keeps. Both are 0 if the runtime lacks one of the metrics.
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
			return 0, 0 // the runtime lacks this metric
		}
		values[i] = m.Value.Uint64()
	}
	since := max(values[ofObjects], values[ofLive]) - values[ofLive]
	return values[ofCycles], int64(since + values[ofFree])
}

// usedMemory returns how many bytes the process takes, for keys and everything else.
func (s *Server) usedMemory() int64 {
	_, heap := s.engine.Process().Memory()
	memory := memoryStats(s.keyspace.Stats())
	return memory.Used(heap)
}

// clientMemory returns how many bytes are taken by input and output of clients that has not been
// processed or sent.
func (s *Server) clientMemory() int64 {
	t := s.transport.Stats()
	return t.Pending + t.Unread + s.engine.ClientMemory()
}

// besideKeys returns the number of bytes that count against maxmemory in addition to the keys:
// those of policies, users and clients. Large replies do not count as far as they fit into the
// memory beyond maxmemory.
func (s *Server) besideKeys() int64 {
	beside, most := s.clientMemory()+s.policies.registry.Bytes()+s.engine.Users.Memory(), s.maxMemory.Load()
	if bound, _ := s.scriptRoom(); most > 0 && bound != math.MaxInt64 {
		beside -= min(s.engine.LargeReplies(), max(bound-most, 0))
	}
	return beside
}

// returnHeap makes Go's runtime collect and return memory to the system, if keys and clients have
// stopped using enough of it. It does nothing without freeHeap.
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
