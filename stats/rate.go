package stats

import (
	"sync/atomic"
	"time"
)

// Rate estimates commands per second over the last tick of the janitor.
type Rate struct {
	Ops  atomic.Int64 // per second
	last atomic.Int64 // commands at the last tick
}

// Tick records the number of commands at the end of a period of d.
func (r *Rate) Tick(commands int64, d time.Duration) {
	before := r.last.Swap(commands)
	if d > 0 {
		r.Ops.Store(max(0, int64(float64(commands-before)/d.Seconds())))
	}
}

// Reset restarts the estimate.
func (r *Rate) Reset() {
	r.Ops.Store(0)
	r.last.Store(0)
}
