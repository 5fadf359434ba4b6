package sandbox

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

const (
	// checkEvery is how many instructions, or steps of a library's loop, pass
	// between two looks at the heap at most. One instruction allocates at most 1 MiB (a
	// table's array that grows to its maximum).
	checkEvery = 256
	// memoryStep is how many bytes a script announces between two looks at the heap.
	memoryStep = 256 << 10
	// LeastMemory is what a script may take even where the heap is at its bound, so that
	// small scripts go on when memory is full.
	LeastMemory = 1 << 20
	// garbageSize is how much a script has to take for [Limits.FreeGarbage] to be called.
	garbageSize = 16 << 20
	// After a collection this part of the bound has to be free for a script to go on, but
	// no more than so many bytes: else it would collect more than it runs.
	gainShare = 8
	maxGain   = 64 << 20
)

// Memory is what all scripts of a pool take together: what they can reach, and what is
// garbage and not collected yet. Both are in the heap, and the runtime alone can tell
// them apart, by a collection. So a script that would bring the sum over a bound collects
// first, and is ended if that did not help. Nothing is remembered from one script to
// the next but how much has been allocated since the last collection.
type Memory struct {
	limits Limits
	// since is how many bytes scripts have allocated since the last collection began.
	since atomic.Int64
	// taking is how many bytes scripts have announced and are about to allocate.
	taking atomic.Int64
	// stride is how many instructions may pass between two looks: fewer where less
	// room is left, since one instruction can take 1 MiB.
	stride atomic.Int64
	// collecting is held by the one that collects.
	collecting sync.Mutex
}

// NewMemory returns a Memory of which nothing is taken.
func NewMemory(limits Limits) *Memory {
	m := &Memory{limits: limits}
	m.stride.Store(checkEvery)
	return m
}

// room is how many bytes the heap may have, and how many of them are kept for others.
func (m *Memory) room() (bound, kept int64) {
	if m.limits.Room == nil {
		return math.MaxInt64, 0
	}
	return m.limits.Room()
}

// setStride looks more often the less room is left.
func (m *Memory) setStride(left int64) int {
	n := min(max(left>>21, checkEvery/16), checkEvery)
	if m.stride.Load() != n {
		m.stride.Store(n)
	}
	return int(n)
}

// collect frees what no script can reach any more. It takes milliseconds, or as many as
// the heap has live hundreds of megabytes.
func (m *Memory) collect() {
	m.collecting.Lock()
	defer m.collecting.Unlock()
	m.since.Store(0)
	runtime.GC()
}

// Places in the samples of a usage.
const (
	heapObjects = iota
	heapAllocated
	heapSamples
)

// usage is the memory of one execution. It belongs to the executing goroutine.
type usage struct {
	*Memory
	samples [heapSamples]metrics.Sample
	// looked says that allocated is set.
	looked    bool
	allocated uint64 // the process's count at the last look
	// lacked says that the script was ended since the heap was at its bound, whoever it
	// was that had brought it there.
	lacked bool
	// own is what was allocated since the first look, by this script or beside it.
	own int64
	// announced is what is about to be allocated and in no count yet, but taking is
	// in that of all scripts.
	announced, taking int64
	// settled says that base is set: the heap after the first collection, less what was
	// kept for others then. From then on it may grow by allowed: what the limit leaves
	// beside all that the script had allocated by then, reachable or not.
	settled       bool
	base, allowed int64
}

func newUsage(m *Memory) usage {
	u := usage{Memory: m}
	u.samples[heapObjects].Name = "/memory/classes/heap/objects:bytes"
	u.samples[heapAllocated].Name = "/gc/heap/allocs:bytes"
	return u
}

// begin readies the usage for another script.
func (u *usage) begin() {
	u.looked, u.settled, u.lacked = false, false, false
	u.own, u.announced = 0, 0
}

// end counts what is garbage from now on.
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

// measure reads how many bytes of objects the heap has and counts what is new.
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

// take notes that n bytes are about to be allocated, and those before have been.
func (u *usage) take(n int64) {
	if n != u.taking {
		u.Memory.taking.Add(n - u.taking)
		u.taking = n
	}
}

// fits looks at the heap. It returns false if what is announced does not fit even after
// a collection. Before it collects it calls beside, since that takes a while.
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

// left is how many bytes the heap may grow by.
func (u *usage) left() int64 {
	bound, _ := u.room()
	return bound - int64(u.samples[heapObjects].Value.Uint64())
}
