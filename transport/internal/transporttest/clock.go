package transporttest

import (
	"context"
	"sync"
	"time"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// Clock is the clock for the write timeout of a transport. It stands still until Run.
type Clock struct {
	mu   sync.Mutex // mu guards the fields below
	at   time.Time
	runs bool
}

// NewClock returns a clock that stands still.
func NewClock() *Clock { return &Clock{at: time.Now()} }

// Run makes the clock show the time of the machine.
func (c *Clock) Run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = true
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs {
		return time.Now()
	}
	return c.at
}

// Advance moves a clock that stands still forward by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Pass makes d pass for the peers of tr, in the steps of its sweeps. lim are the limits of tr. When
// Pass returns, the transport has processed all earlier events.
func Pass(tr transport.Transport, clock *Clock, lim transport.Limits, d time.Duration) {
	step := min(base.SweepEvery(lim.WriteTimeout), base.SweepEvery(lim.Linger))
	if sweeper, ok := tr.(interface{ Sweep(elapsed time.Duration) }); ok {
		for ; d > 0; d -= step {
			sweeper.Sweep(step)
		}
		return
	}
	// Each loop has to complete two rounds, because it may have been about to end the first one.
	for {
		for range 2 {
			_ = tr.(transport.Looped).Answer(context.Background()) // there is no error, because the context has no deadline
		}
		if d <= 0 {
			return
		}
		clock.Advance(step)
		d -= step
	}
}
