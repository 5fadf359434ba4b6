package shared

import "sync/atomic"

// Pins counts those who need bytes as they are that are else changed in place. The zero
// Pins counts nobody.
type Pins struct{ n atomic.Int32 }

// Pin counts somebody until unpin is called, once, on any goroutine. It is called while what
// is pinned is locked.
func (p *Pins) Pin() (unpin func()) {
	p.n.Add(1)
	return func() { p.n.Add(-1) }
}

// Pinned reports whether there is somebody. While what is pinned is locked nobody can come.
func (p *Pins) Pinned() bool { return p.n.Load() > 0 }
