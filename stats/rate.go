package stats

import (
	"sync/atomic"
	"time"
)

// Rate estimates the number of commands per second, over the time between the last two calls of
// Tick. Any goroutine may read Ops.
type Rate struct {
	Ops  atomic.Int64 // the number of commands per second
	last atomic.Int64 // number of all commands at the last call of Tick
}

// Tick sets Ops. commands is the number of all commands so far, and d the time since the last call.
// If d is not positive, Ops does not change.
func (r *Rate) Tick(commands int64, d time.Duration) {
	before := r.last.Swap(commands)
	if d > 0 {
		r.Ops.Store(max(0, int64(float64(commands-before)/d.Seconds())))
	}
}

// Reset sets the estimate to 0, after the number of all commands was reset.
func (r *Rate) Reset() {
	r.Ops.Store(0)
	r.last.Store(0)
}
