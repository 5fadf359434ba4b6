//go:build !linux

package dense

// NewArena makes an arena whose memory is Go's own.
func NewArena() *Arena { return NewHeapArena() }
