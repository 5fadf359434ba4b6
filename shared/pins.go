package shared

import "sync/atomic"

// Pins counts the readers of bytes that would otherwise be changed in place. The zero value has no
// reader. Any goroutine may use it.
type Pins struct{ n atomic.Int32 }

// Pin adds a reader until unpin is called. Any goroutine may call unpin, once. The caller of Pin
// holds the lock that guards the bytes.
func (p *Pins) Pin() (unpin func()) {
	p.n.Add(1)
	return func() { p.n.Add(-1) }
}

// Pinned reports whether there is a reader. No reader can be added while the caller holds the lock
// that guards the bytes.
func (p *Pins) Pinned() bool { return p.n.Load() > 0 }
