package transport

import (
	"log/slog"
	"sync"
	"time"
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

func (c *Clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs {
		return time.Now()
	}
	return c.at
}

func (c *Clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// NewGoroutineAt is NewGoroutine with a clock.
func NewGoroutineAt(h Handler, lim Limits, log *slog.Logger, clock *Clock) *Goroutine {
	return newGoroutine(h, lim, log, clock.now)
}

// Pass lets d pass for the peers of a transport with these limits, as often as the transport
// looks at them. When it returns, the transport has seen what was to be seen before.
func Pass(tr Transport, clock *Clock, lim Limits, d time.Duration) {
	tr.(interface {
		pass(clock *Clock, step, d time.Duration)
	}).pass(clock, min(sweepEvery(lim.WriteTimeout), sweepEvery(lim.Linger)), d)
}

// Sweep has the transport look at its connections as if so much time had passed.
func (g *Goroutine) Sweep(elapsed time.Duration) { g.sweep(elapsed) }

func (g *Goroutine) pass(_ *Clock, step, d time.Duration) {
	for ; d > 0; d -= step {
		g.sweep(step)
	}
}

// AcceptLoop is how each transport accepts: it calls accept until stop is closed, or until the
// error says that the listener is. failed counts the other errors.
var AcceptLoop = acceptLoop
