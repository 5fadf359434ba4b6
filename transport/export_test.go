package transport

import "time"

// Sweep has the transport look at its connections as if so much time had passed.
func (g *Goroutine) Sweep(elapsed time.Duration) { g.sweep(elapsed) }
