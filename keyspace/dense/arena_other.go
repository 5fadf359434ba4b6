//go:build !linux

package dense

// NewArena returns an arena whose memory is in Go's heap, since there is no mapping on this system.
func NewArena() *Arena { return NewHeapArena() }
