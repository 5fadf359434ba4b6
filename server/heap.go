package server

import (
	"math"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// heap is the state by which a server bounds Go's heap and returns memory.
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

// With a maxmemory of M the server may take eleven tenths of M, and 64 MiB for memory that clients
// cannot make grow: the program, its threads and buffers, and garbage. The tables are not in Go's
// heap. The rest is the limit of Go's runtime, which then collects more often instead of taking
// more memory.
const (
	processShare = 64 << 20
	// programShare is the part of the 64 MiB that is not in Go's heap: the program's pages,
	// its threads, and the memory that the kernel counts with them.
	programShare = 20 << 20
	// Go's heap may exceed its bound while a collection runs. The runtime aims to stay within
	// eleven tenths of it. If other goroutines take processor time from the collector, 1.16 times
	// the bound was measured. So the bound leaves a seventh of the room, up to maxOvershoot: most
	// of a large heap is values without pointers, which do not prolong a collection.
	overshootShare = 7
	maxOvershoot   = 48 << 20
	// minHeap always remains for Go's runtime, which otherwise would only collect.
	minHeap = 32 << 20
	// scriptSpare is the part of the heap that scripts leave for memory outside objects:
	// stacks, buffers, the runtime's tables, and gaps between objects.
	scriptSpare = 16 << 20
	// heapStep is the smallest change of the bound that is passed to the runtime.
	heapStep = 1 << 20
)

// heapBound returns how many bytes Go's runtime may take, given maxmemory and the memory of
// tables and input outside its heap. Without maxmemory there is no bound.
func heapBound(maxMemory, outside int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	room := maxMemory + maxMemory/10 + processShare - programShare - outside
	return max(minHeap, room-min(room/overshootShare, maxOvershoot))
}

// userShare is the part of maxmemory that commands may make users take, and minUsers is the number
// of bytes that they may always take.
const (
	userShare = 10
	minUsers  = 1 << 20
)

// userBound returns how many bytes ACL SETUSER may make users take. Without maxmemory the bound of
// package acl applies.
func userBound(maxMemory int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	return max(maxMemory/userShare, minUsers)
}

// outsideHeap returns how many bytes tables and long input take outside of Go's heap.
func (s *Server) outsideHeap() int64 { return s.keyspace.Outside() + s.longInput.most.Load() }

// boundHeap passes its bound to Go's runtime if the bound has changed.
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

// scriptRoom returns how many bytes of objects Go's heap may have while scripts run, and how
// many of them are reserved for keys.
func (s *Server) scriptRoom() (bound, kept int64) {
	kept = s.keyspace.InHeap()
	m := s.maxMemory.Load()
	if m <= 0 || s.freeHeap == nil {
		return math.MaxInt64, kept
	}
	return heapBound(m, s.outsideHeap()) - scriptSpare, kept
}

// minFreed is how many bytes of Go's heap keys must have freed to justify a collection, and
// freedShare the share of the peak that this must be.
const (
	minFreed   = 16 << 20
	freedShare = 4
)

// freedHeap records how much of Go's heap keys take: large collections and long values. The runtime
// only collects when memory is allocated, and answering commands allocates nothing. Without an
// explicit collection the memory of a deleted collection would stay for minutes.
type freedHeap struct {
	mu   sync.Mutex
	peak int64 // guarded by mu
}

// due reports whether enough memory has been freed since it last returned true.
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

// After quietLooks checks without a collection, minIdle bytes of garbage or free memory are
// considered the rest of a burst: replies and commands of many clients at once.
const (
	quietLooks = 5
	minIdle    = 32 << 20
)

// quietHeap records the idle memory in Go's heap while the runtime does not collect.
type quietHeap struct {
	mu     sync.Mutex
	cycles uint64 // guarded by mu, as are the others
	held   int64  // the most that keys and clients held since the check before the last collection
	last   int64  // what they held at the last check
	quiet  int
}

// due reports whether so many idle bytes, after so many collections, have been idle for long
// enough. Memory that keys and clients have freed since the last collection is idle, too: it was
// still in use then.
func (q *quietHeap) due(cycles uint64, idle, held int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.last
	q.last = held
	if cycles != q.cycles {
		// The collection ran between the two checks and freed none of the memory held then.
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

// idleHeap returns the number of collections, and the bytes of Go's heap that are idle since
// the last one: new objects, which may be garbage, and free memory that the process keeps.
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
			return 0, 0 // this runtime lacks the metric
		}
		values[i] = m.Value.Uint64()
	}
	since := max(values[ofObjects], values[ofLive]) - values[ofLive]
	return values[ofCycles], int64(since + values[ofFree])
}

// usedMemory returns how many bytes the process takes for keys and everything else.
func (s *Server) usedMemory() int64 {
	_, heap := s.engine.Process().Memory()
	memory := memoryStats(s.keyspace.Stats())
	return memory.Used(heap)
}

// clientMemory returns how many bytes waiting input and output of clients take.
func (s *Server) clientMemory() int64 {
	t := s.transport.Stats()
	return t.Pending + t.Unread + s.engine.ClientMemory()
}

// besideKeys returns the memory that counts against maxmemory in addition to the keys: that of
// policies, users and clients, except large replies that fit into the memory beyond maxmemory.
func (s *Server) besideKeys() int64 {
	beside, most := s.clientMemory()+s.policies.registry.Bytes()+s.engine.Users.Memory(), s.maxMemory.Load()
	if bound, _ := s.scriptRoom(); most > 0 && bound != math.MaxInt64 {
		beside -= min(s.engine.LargeReplies(), max(bound-most, 0))
	}
	return beside
}

// returnHeap makes Go's runtime return memory that keys and clients no longer need.
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
