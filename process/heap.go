package process

import (
	"math"
	"runtime/metrics"
	"sync"
)

// HeapOptions has the functions by which a [Heap] changes and measures Go's runtime. They concern
// the whole process.
type HeapOptions struct {
	// Limit sets the memory limit of Go's runtime in bytes, as [debug.SetMemoryLimit] does; nil
	// means that there is no limit.
	Limit func(bytes int64) int64
	// Size returns the number of bytes that Limit bounds; nil asks Go's runtime.
	Size func() int64
	// Percent sets by how many percent Go's heap grows between two collections, as
	// [debug.SetGCPercent] does; nil means that this stays as it is.
	Percent func(percent int) int
	// Free makes the runtime collect garbage and return free memory to the operating system, as
	// [debug.FreeOSMemory] does; nil means that memory is not returned explicitly.
	Free func()
}

// Heap bounds the memory of Go's runtime, and returns memory that is no longer used to the
// operating system. Any goroutine may call its methods.
type Heap struct {
	o     HeapOptions
	freed freedHeap
	quiet quietHeap

	mu      sync.Mutex // guards the fields below
	bound   int64      // the last value passed to o.Limit
	percent int        // the last value passed to o.Percent
}

// NewHeap creates a Heap without a bound. Until the first call of [Heap.SetPace], while files are loaded, the heap grows by
// minPercent between two collections.
func NewHeap(o HeapOptions) *Heap {
	if o.Percent != nil {
		o.Percent(minPercent)
	}
	return &Heap{o: o, bound: math.MaxInt64, percent: minPercent}
}

// With a maxmemory of M bytes the process may take 1.1 M, and in addition processShare for memory
// that clients cannot increase: the program, its threads and buffers, and garbage. The hash tables
// of the keyspace and client input are outside of Go's heap. What is left for Go's heap, less the
// reserves below, is the memory limit of Go's runtime. Near this limit the runtime collects garbage
// more often instead of taking more memory.
const (
	processShare = 64 << 20
	// programShare is the part of processShare that is not in Go's heap: the pages of the program,
	// its threads, and memory that the kernel counts as theirs.
	programShare = 20 << 20
	// overshootShare and maxOvershoot give the part of the memory by which Go's heap may exceed its
	// bound while a collection runs. The runtime aims to stay within 1.1 times the bound, but 1.16
	// times was measured when other goroutines took processor time from the collector. So the bound
	// leaves free 1/overshootShare of the memory, up to maxOvershoot bytes. A fixed maximum is
	// enough, because most of a large heap is values without pointers, which do not prolong a
	// collection.
	overshootShare = 7
	maxOvershoot   = 48 << 20
	// minHeap is the smallest bound in bytes. With a smaller bound the runtime would spend most of
	// its time on collections.
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

// SetBound computes the bound of Go's heap. maxMemory is the value of maxmemory in bytes; 0 means
// that there is no bound. outside is the number of bytes of tables and input outside of the heap.
// SetBound passes the bound to the runtime if it was set or removed, or if it has changed by
// heapStep or more. It does nothing without [HeapOptions].Limit.
func (h *Heap) SetBound(maxMemory, outside int64) {
	if h.o.Limit == nil {
		return
	}
	bound := heapBound(maxMemory, outside)
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.bound; bound != last && (bound == math.MaxInt64 || last == math.MaxInt64 || max(bound-last, last-bound) >= heapStep) {
		h.bound = bound
		h.o.Limit(bound)
	}
}

// Exceeds reports whether Go's heap exceeds its bound by more than tolerance bytes. It returns false
// if no bound was set.
func (h *Heap) Exceeds(tolerance int64) bool {
	if h.o.Limit == nil {
		return false
	}
	h.mu.Lock()
	bound := h.bound
	h.mu.Unlock()
	return bound < math.MaxInt64-tolerance && h.size() > bound+tolerance
}

// These choose by how many percent the heap grows between two collections.
const (
	// minPercent is the percentage for a large heap. Most long-lived data is outside of Go's heap, and commands
	// allocate nothing. So collecting earlier than at Go's 100 costs little and keeps the heap small.
	minPercent = 50
	// minGarbage is the growth in bytes for which a collection is worthwhile. In a heap of a few megabytes minPercent
	// is less: calls over gRPC and HTTP, which allocate, would spend an eighth of their processor time on collections.
	minGarbage = 16 << 20
	// maxPercent bounds the growth of a heap whose live objects are few, until the next call of SetPace.
	maxPercent = 800
)

// percentFor returns the percentage for a heap with live bytes of objects that the last collection kept.
func percentFor(live int64) int {
	return int(min(maxPercent, max(minPercent, 100*minGarbage/max(live, 1))))
}

// SetPace sets by how many percent the heap grows between two collections: by minGarbage bytes at least. It does nothing
// without [HeapOptions].Percent. It must be called about once a second.
func (h *Heap) SetPace() {
	if h.o.Percent == nil {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() == metrics.KindUint64 {
		h.setPace(int64(live[0].Value.Uint64()))
	}
}

// setPace is SetPace with live bytes of objects. It leaves out changes of less than a quarter, since each stops the program
// for an instant.
func (h *Heap) setPace(live int64) {
	percent := percentFor(live)
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.percent; percent != last && (percent == minPercent || 4*max(percent-last, last-percent) >= last) {
		h.percent = percent
		h.o.Percent(percent)
	}
}

// size returns the number of bytes that the bound of Go's heap limits; see [debug.SetMemoryLimit].
// It returns 0 if the runtime lacks a metric.
func (h *Heap) size() int64 {
	if h.o.Size != nil {
		return h.o.Size()
	}
	const ofAll, ofReleased = 0, 1
	sizes := []metrics.Sample{
		ofAll:      {Name: "/memory/classes/total:bytes"},
		ofReleased: {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sizes)
	for _, m := range sizes {
		if m.Value.Kind() != metrics.KindUint64 {
			return 0 // the runtime does not have this metric
		}
	}
	return int64(sizes[ofAll].Value.Uint64() - sizes[ofReleased].Value.Uint64())
}

// ScriptRoom returns how many bytes of objects Go's heap may have while scripts run. maxMemory and
// outside are as in [Heap.SetBound]; maxMemory must not be 0.
func ScriptRoom(maxMemory, outside int64) int64 {
	return heapBound(maxMemory, outside) - scriptSpare
}

// ReturnIdle makes Go's runtime collect garbage and return free memory to the operating system, if
// keys have freed much memory, or if much memory has been idle for several calls. keys and clients
// are the numbers of bytes that they take in Go's heap now. ReturnIdle does nothing without
// [HeapOptions].Free. It must be called about once a second.
func (h *Heap) ReturnIdle(keys, clients int64) {
	if h.o.Free == nil {
		return
	}
	cycles, idle := idleHeap()
	freed := h.freed.due(keys)
	if quiet := h.quiet.due(cycles, idle, keys+clients); freed || quiet {
		h.o.Free()
	}
}

// minFreed is the minimum number of bytes that keys must have freed in Go's heap since their peak
// for a collection to be worthwhile. They must also have freed the fraction 1/freedShare of the
// peak.
const (
	minFreed   = 16 << 20
	freedShare = 4
)

// freedHeap records the peak of the memory that keys take in Go's heap, such as large collections
// and long values. The runtime collects garbage only when memory is allocated, and answering
// commands allocates nothing. Without an explicit collection, the memory of a deleted collection
// would stay allocated for minutes.
type freedHeap struct {
	mu   sync.Mutex
	peak int64 // the highest memory use so far; guarded by mu
}

// due reports whether keys, which take now bytes, have freed enough memory since their peak. It
// updates the peak, which starts anew after each call that returns true.
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

// quietLooks is the number of consecutive checks without a collection after which idle memory is
// returned to the operating system, if at each check there were at least minIdle bytes of it. Such
// memory is garbage or free memory after a burst, such as replies and commands of many clients at
// once.
const (
	quietLooks = 5
	minIdle    = 32 << 20
)

// quietHeap records the idle memory in Go's heap for as long as the runtime does not collect
// garbage.
type quietHeap struct {
	mu     sync.Mutex
	cycles uint64 // number of collections of garbage at the last check; guarded by mu, as are the fields below
	held   int64  // maximum memory that keys and clients held since the check before the last collection
	last   int64  // memory that keys and clients held at the last check
	quiet  int    // number of checks in a row that found enough idle memory
}

// due reports whether at least minIdle bytes have been idle for quietLooks consecutive checks
// without a collection, of which this call is the last. cycles is the number of collections so far,
// idle the number of idle bytes in the heap, and held the number of bytes that keys and clients
// hold. Memory that keys and clients have freed since the last collection counts as idle, too,
// since the collection could not free it.
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

// idleHeap returns cycles, the number of collections so far, and idle, the number of bytes in Go's
// heap that are idle: objects allocated since the last collection, which may be garbage, and free
// memory that the process keeps. Both are 0 if the runtime lacks one of the metrics.
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
			return 0, 0 // the runtime does not have this metric
		}
		values[i] = m.Value.Uint64()
	}
	since := max(values[ofObjects], values[ofLive]) - values[ofLive]
	return values[ofCycles], int64(since + values[ofFree])
}

// HeapObjects returns the size in bytes of the objects in Go's heap, including garbage that was not
// freed yet. It returns 0 if the runtime lacks the metric.
func HeapObjects() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
