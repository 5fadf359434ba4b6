package inproc

import "runtime"

// HeapBytes returns the bytes of reachable objects in this process.
func HeapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools keep objects for one collection
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// AllocatedBy returns how many bytes f allocates. Allocations of other goroutines count as well.
func AllocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
