package sandbox

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

const (
	// checkEvery is the maximum number of instructions, or steps of a library's loop, between two
	// checks of the heap. One instruction allocates at most 1 MiB (a table's array that grows to
	// its maximum).
	checkEvery = 256
	// memoryStep is the number of bytes that a script announces between two checks of the heap.
	memoryStep = 256 << 10
	// LeastMemory is what a script may allocate even if the heap is at its bound, so that small
	// scripts run when memory is full.
	LeastMemory = 1 << 20
	// garbageSize is the number of bytes that a script must allocate for [Limits.FreeGarbage] to be
	// called.
	garbageSize = 16 << 20
	// After a garbage collection this part of the bound must be free for a script to continue, but
	// at most maxGain bytes: otherwise it would collect more than it runs.
	gainShare = 8
	maxGain   = 64 << 20
)

// Memory counts the memory of all scripts of a pool: reachable objects, and garbage that has not
// been collected yet. Both are in the heap, and only a garbage collection can distinguish them. So
// a script that would bring the sum over a bound starts a collection first, and is ended if that
// does not help. The only data that is kept from one script to the next is the number of bytes
// allocated since the last collection.
type Memory struct {
	limits Limits
	// since is the number of bytes that scripts have allocated since the last collection began.
	since atomic.Int64
	// taking is the number of bytes that scripts have announced and are about to allocate.
	taking atomic.Int64
	// stride is the number of instructions between two checks: fewer if less room is left, since
	// one instruction can allocate 1 MiB.
	stride atomic.Int64
	// collecting is held during a collection.
	collecting sync.Mutex
}

// NewMemory returns a Memory without any allocations.
func NewMemory(limits Limits) *Memory {
	m := &Memory{limits: limits}
	m.stride.Store(checkEvery)
	return m
}

// room returns the maximum size of the heap, and how many bytes of it are used by others.
func (m *Memory) room() (bound, kept int64) {
	if m.limits.Room == nil {
		return math.MaxInt64, 0
	}
	return m.limits.Room()
}

// setStride makes checks more frequent if less room is left.
func (m *Memory) setStride(left int64) int {
	n := min(max(left>>21, checkEvery/16), checkEvery)
	if m.stride.Load() != n {
		m.stride.Store(n)
	}
	return int(n)
}

// collect frees memory that no script can reach. It takes milliseconds, about one for each hundred
// megabytes of live heap.
func (m *Memory) collect() {
	m.collecting.Lock()
	defer m.collecting.Unlock()
	m.since.Store(0)
	runtime.GC()
}

// Indices of the samples of a usage.
const (
	heapObjects = iota
	heapAllocated
	heapSamples
)

// usage is the memory of one execution. It belongs to the executing goroutine.
type usage struct {
	*Memory
	samples [heapSamples]metrics.Sample
	// looked says that allocated has been set.
	looked    bool
	allocated uint64 // the process's count at the last check
	// lacked says that the script was ended because the heap was at its bound, even if others have
	// filled it.
	lacked bool
	// own is the number of bytes allocated since the first check, by this script or concurrently.
	own int64
	// announced is the number of bytes that are about to be allocated and are not counted yet;
	// taking is the part of it in the count of all scripts.
	announced, taking int64
	// settled says that base has been set: the size of the heap after the first collection, without
	// what others used then. From then on it may grow by allowed: the limit minus everything that
	// the script had allocated by then, reachable or not.
	settled       bool
	base, allowed int64
}

func newUsage(m *Memory) usage {
	u := usage{Memory: m}
	u.samples[heapObjects].Name = "/memory/classes/heap/objects:bytes"
	u.samples[heapAllocated].Name = "/gc/heap/allocs:bytes"
	return u
}

// begin prepares the usage for another script.
func (u *usage) begin() {
	u.looked, u.settled, u.lacked = false, false, false
	u.own, u.announced = 0, 0
}

// end counts the memory that is garbage from now on.
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

// measure reads the number of bytes of objects in the heap and counts the new ones.
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

// take notes that n bytes are about to be allocated, and that earlier ones have been.
func (u *usage) take(n int64) {
	if n != u.taking {
		u.Memory.taking.Add(n - u.taking)
		u.taking = n
	}
}

// fits checks the heap. It returns false if the announced bytes do not fit even after a collection.
// It calls beside before it collects, since that takes a while.
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

// left returns the number of bytes by which the heap may grow.
func (u *usage) left() int64 {
	bound, _ := u.room()
	return bound - int64(u.samples[heapObjects].Value.Uint64())
}
