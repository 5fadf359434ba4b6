package sandbox

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

const (
	// checkEvery is the maximum number of instructions, or of steps of a library's loop, between
	// two checks of the heap. One instruction allocates at most 1 MiB, when the array of a table
	// grows to its maximum.
	checkEvery = 256
	// memoryStep is the number of bytes that a script may announce between two checks of the heap.
	memoryStep = 256 << 10
	// LeastMemory is the number of bytes that a script may allocate even if the heap is at its
	// bound. Small scripts can run then when memory is full.
	LeastMemory = 1 << 20
	// garbageSize is the number of bytes that a script must allocate for [Limits.FreeGarbage] to be
	// called.
	garbageSize = 16 << 20
	// For a script to continue when the heap was at its bound, a garbage collection must free the
	// fraction 1/gainShare of the bound, or maxGain bytes if that is less. Otherwise the script
	// would spend most of its time on collections.
	gainShare = 8
	maxGain   = 64 << 20
)

// Memory counts the memory of all scripts of a pool: reachable objects, and garbage that has not
// been collected yet. Both are in the heap, and only a garbage collection can distinguish them.
// Therefore a script that would bring the sum over a bound starts a collection first, and is ended
// only if that does not free enough. The only count that is kept from one script to the next is the
// number of bytes allocated since the last collection. Any number of goroutines may use a Memory.
type Memory struct {
	limits Limits
	// since is the number of bytes that have been allocated, while scripts ran, since the last
	// collection that a script started.
	since atomic.Int64
	// taking is the number of bytes that scripts have announced and not allocated yet.
	taking atomic.Int64
	// stride is the number of instructions between two checks of the heap. It is smaller if less
	// room is left, since one instruction can allocate 1 MiB.
	stride atomic.Int64
	// collecting is held during a collection, so that only one goroutine at a time runs one.
	collecting sync.Mutex
}

// NewMemory returns a Memory for scripts with the given limits.
func NewMemory(limits Limits) *Memory {
	m := &Memory{limits: limits}
	m.stride.Store(checkEvery)
	return m
}

// room returns bound, the maximum size of the heap, and kept, the part of it that other things than
// scripts use; see Limits.Room.
func (m *Memory) room() (bound, kept int64) {
	if m.limits.Room == nil {
		return math.MaxInt64, 0
	}
	return m.limits.Room()
}

// setStride sets and returns the number of instructions between two checks of the heap, which is
// smaller if less room is left. left is the number of bytes by which the heap may grow.
func (m *Memory) setStride(left int64) int {
	n := min(max(left>>21, checkEvery/16), checkEvery)
	if m.stride.Load() != n {
		m.stride.Store(n)
	}
	return int(n)
}

// collect runs a garbage collection, which takes about a millisecond for each hundred megabytes of
// live heap. If another goroutine collects, collect waits for it first.
func (m *Memory) collect() {
	m.collecting.Lock()
	defer m.collecting.Unlock()
	m.since.Store(0)
	runtime.GC()
}

// heapObjects and heapAllocated are the indices of the metrics in usage.samples. heapSamples is the
// number of metrics.
const (
	heapObjects = iota
	heapAllocated
	heapSamples
)

// usage is the memory of one execution. It belongs to the goroutine that executes the script.
type usage struct {
	*Memory
	samples [heapSamples]metrics.Sample
	// looked says that allocated has been set, by the first check of the heap.
	looked    bool
	allocated uint64 // number of bytes that the process had allocated at the last check
	// lacked says that the script was ended because the heap was at its bound, perhaps because of
	// keys or other scripts.
	lacked bool
	// own is the number of bytes that the process has allocated since the first check of the
	// script. It includes allocations of other goroutines.
	own int64
	// announced is the number of bytes that are about to be allocated and that no check has counted
	// yet. taking is the number of bytes of this script that are in Memory.taking.
	announced, taking int64
	// settled says that base and allowed have been set, after the first collection. base is the
	// size of the heap then, without the part that Limits.Room calls kept. The heap without that
	// part may grow from base by allowed bytes: the limit minus all that the script had allocated
	// by then, reachable or not, and at least half of the limit.
	settled       bool
	base, allowed int64
}

func newUsage(m *Memory) usage {
	u := usage{Memory: m}
	u.samples[heapObjects].Name = "/memory/classes/heap/objects:bytes"
	u.samples[heapAllocated].Name = "/gc/heap/allocs:bytes"
	return u
}

func (u *usage) begin() {
	u.looked, u.settled, u.lacked = false, false, false
	u.own, u.announced = 0, 0
}

// end counts the memory of the script, which becomes garbage. It calls FreeGarbage if the script
// has allocated garbageSize bytes or more.
func (u *usage) end() {
	if !u.looked {
		return
	}
	u.measure()
	u.take(0)
	if u.own >= garbageSize && u.limits.FreeGarbage != nil {
		u.limits.FreeGarbage()
	}
}

// measure returns the number of bytes of objects in the heap. It adds what was allocated since the
// last call to own and to since.
func (u *usage) measure() int64 {
	metrics.Read(u.samples[:])
	allocated := u.samples[heapAllocated].Value.Uint64()
	if u.looked {
		grown := int64(allocated - u.allocated)
		u.own += grown
		u.since.Add(grown)
	}
	u.looked, u.allocated = true, allocated
	return int64(u.samples[heapObjects].Value.Uint64())
}

// take sets the number of bytes that this script is about to allocate to n. Bytes that it took
// before are allocated by now.
func (u *usage) take(n int64) {
	if n != u.taking {
		u.Memory.taking.Add(n - u.taking)
		u.taking = n
	}
}

// fits checks the heap, counts the announced bytes and reports whether they fit. If they do not
// fit, or if there may be much garbage, it calls beside, because a collection takes a while, then
// runs a collection and decides by its result.
func (u *usage) fits(beside func()) bool {
	objects := u.measure()
	u.take(u.announced)
	u.announced = 0
	bound, _ := u.room()
	half := u.limits.Memory / 2
	full := objects+u.Memory.taking.Load() > bound && u.own+u.taking > LeastMemory
	if !full && u.since.Load()+u.taking <= half && (u.settled || u.own+u.taking <= half) {
		return true
	}
	beside()
	own := u.own
	u.collect()
	objects = u.measure()
	bound, kept := u.room()
	if full && objects+u.Memory.taking.Load() > bound-min(bound/gainShare, maxGain) {
		u.lacked = true
		return false
	}
	if !u.settled {
		u.settled, u.base, u.allowed = true, objects-kept, max(half, u.limits.Memory-own)
	}
	return objects-kept-u.base+u.taking <= u.allowed
}

// left returns the number of bytes by which the heap may grow, as of the last measure.
func (u *usage) left() int64 {
	bound, _ := u.room()
	return bound - int64(u.samples[heapObjects].Value.Uint64())
}
