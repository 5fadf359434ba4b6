package inproc

import "runtime"

// HeapBytes runs garbage collections and returns the number of bytes of reachable objects in this
// process.
func HeapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // twice, because pools keep their objects for one collection
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// AllocatedBy calls f and returns the number of bytes that are allocated meanwhile. Allocations of
// other goroutines count as well.
func AllocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
