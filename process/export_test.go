package process

// FreedHeap decides when memory that keys have freed is returned.
type FreedHeap struct{ f freedHeap }

// Due is one check with the bytes that keys take.
func (f *FreedHeap) Due(keys int64) bool { return f.f.due(keys) }

// QuietHeap decides when idle memory of Go's heap is returned.
type QuietHeap struct{ q quietHeap }

// Due is one check.
func (q *QuietHeap) Due(cycles uint64, idle, held int64) bool { return q.q.due(cycles, idle, held) }

// SetPaceFor is SetPace of a heap with live bytes of objects.
func (h *Heap) SetPaceFor(live int64) { h.setPace(live) }
