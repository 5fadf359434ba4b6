package goroutine

import (
	"time"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// A connection whose read buffer has not been needed for so long gives it back.
const shrinkAfter = 2 * time.Second

// reap looks at all connections now and then: a deadline set at every read and
// write would cost more than all else that a transport does for a small command.
func (t *Transport) reap() {
	last := t.now()
	timer := time.NewTimer(base.SweepEvery(t.lim.Load().WriteTimeout))
	defer timer.Stop()
	for {
		select {
		case <-t.idle:
			return
		case <-timer.C:
			now := t.now()
			t.Sweep(now.Sub(last))
			last = now
			timer.Reset(base.SweepEvery(t.lim.Load().WriteTimeout))
		}
	}
}

// Sweep looks at all connections, and cuts and shrinks those that it is time for. elapsed has
// passed since the last Sweep. The transport calls it by itself; tests call it with time of their own.
func (t *Transport) Sweep(elapsed time.Duration) {
	limit, pressed := t.lim.Load().WriteTimeout, base.Pressed(t.h)
	// No client is to blame for the time in which this process did not run.
	elapsed = min(elapsed, 2*base.SweepEvery(limit))
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		c.watch.idleFor(c, elapsed)
		if limit == 0 || c.aborted.Load() || c.patient.Load() && !t.stopping() {
			continue
		}
		stuck := c.watch.stuckFor(c, elapsed)
		if stuck >= limit || pressed && stuck >= limit/base.PressedShare && c.counted.Load() {
			t.slowClosed.Add(1)
			c.cut()
		}
	}
}

// watch is what the reaper remembers of a connection between two looks.
type watch struct {
	writes uint64
	unsent int
	stuck  time.Duration
	in     int64
	idle   time.Duration
}

// stuckFor returns for how long a write has been under way of which the peer has
// taken nothing.
func (w *watch) stuckFor(c *conn, elapsed time.Duration) time.Duration {
	writes := c.writes.Load()
	if writes != w.writes || writes%2 == 0 {
		w.writes, w.unsent, w.stuck = writes, -2, 0
		return 0
	}
	unsent := unsent(rawConn(c.nc))
	if unsent != w.unsent || unsent == 0 { // with 0 the writer is late, not the peer
		w.unsent, w.stuck = unsent, 0
		return 0
	}
	w.stuck += elapsed
	return w.stuck
}

// idleFor has a connection that keeps a large buffer for nothing give it back.
func (w *watch) idleFor(c *conn, elapsed time.Duration) {
	in := c.moved.bytesIn.Load()
	if in != w.in || c.inputSize.Load() == 0 {
		w.in, w.idle = in, 0
		return
	}
	w.idle += elapsed
	if w.idle >= shrinkAfter {
		w.idle = 0
		c.shrink.Store(true)
		c.interrupt()
	}
}
