package inproc

import "runtime"

// HeapBytes is what is reachable in this process.
func HeapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held is gone after the second
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// AllocatedBy is how many bytes f allocates. What else runs counts as well.
func AllocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
