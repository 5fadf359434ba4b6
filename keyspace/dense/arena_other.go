//go:build !linux

package dense

// NewArena returns an arena in Go's heap.
func NewArena() *Arena { return NewHeapArena() }
