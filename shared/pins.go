package shared

import "sync/atomic"

// Pins counts the readers of bytes that would otherwise be changed in place. The zero value has none.
type Pins struct{ n atomic.Int32 }

// Pin adds a reader until unpin is called, which any goroutine may do once. The caller holds the
// lock of the bytes.
func (p *Pins) Pin() (unpin func()) {
	p.n.Add(1)
	return func() { p.n.Add(-1) }
}

// Pinned reports whether there is a reader. No reader can be added while the bytes are locked.
func (p *Pins) Pinned() bool { return p.n.Load() > 0 }
