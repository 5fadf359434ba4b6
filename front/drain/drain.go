// Package drain says when a port that stops has answered its calls, whatever its peers do.
package drain

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// Linger is the time without a call after which a port need not wait for its peers.
	Linger = time.Second
	// period is the time between two looks.
	period = 50 * time.Millisecond
)

// Calls counts the calls of a port that are being decided. A call whose message has not come yet is none. Any goroutine may call the
// methods. The zero value has no calls.
type Calls struct{ running, ended atomic.Int64 }

// Begin notes that a call begins.
func (c *Calls) Begin() { c.running.Add(1) }

// End notes the end of a call for which Begin was called.
func (c *Calls) End() {
	c.ended.Add(1)
	c.running.Add(-1)
}

// Context returns a context for the stop of the port. It ends with ctx, when there was no call for the time [Linger], and by stop,
// which has to be called.
func (c *Calls) Context(ctx context.Context) (is context.Context, stop context.CancelFunc) {
	is, stop = context.WithCancel(ctx)
	go func() {
		defer stop()
		c.await(is)
	}()
	return is, stop
}

// await returns when ctx ends, or there was no call for the time Linger.
func (c *Calls) await(ctx context.Context) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for quiet, ended := time.Duration(0), c.ended.Load(); quiet < Linger; quiet += period {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := c.ended.Load(); c.running.Load() > 0 || now != ended {
			quiet, ended = 0, now
		}
	}
}
