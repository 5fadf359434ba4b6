package transporttest

import (
	"context"
	"sync"
	"time"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// Clock is the clock by which peers of a transport are slow. It stands still until Run.
type Clock struct {
	mu   sync.Mutex // guards what follows
	at   time.Time
	runs bool
}

// NewClock returns a clock that stands still.
func NewClock() *Clock { return &Clock{at: time.Now()} }

// Run has the clock show the time of the machine.
func (c *Clock) Run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = true
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs {
		return time.Now()
	}
	return c.at
}

// Advance has a clock that stands still show d later.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Pass lets d pass for the peers of a transport with these limits, as often as the transport
// looks at them. When it returns, the transport has seen what was to be seen before.
func Pass(tr transport.Transport, clock *Clock, lim transport.Limits, d time.Duration) {
	step := min(base.SweepEvery(lim.WriteTimeout), base.SweepEvery(lim.Linger))
	if sweeper, ok := tr.(interface{ Sweep(elapsed time.Duration) }); ok {
		for ; d > 0; d -= step {
			sweeper.Sweep(step)
		}
		return
	}
	// Wait twice for each loop to come round: the first time it may have been about to end its
	// round.
	for {
		for range 2 {
			_ = tr.(transport.Looped).Answer(context.Background()) // no error without an end
		}
		if d <= 0 {
			return
		}
		clock.Advance(step)
		d -= step
	}
}
