package goroutine

import (
	"time"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// shrinkAfter is the time after which a connection that has received nothing returns its large read
// buffer.
const shrinkAfter = 2 * time.Second

// reap sweeps all connections periodically. Setting a deadline for every read and write instead
// would cost more than everything else that a transport does for a small command.
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

// Sweep closes connections whose peers do not read, and shrinks the buffers of idle ones. elapsed
// is the time since the last Sweep. The transport calls Sweep by itself; tests call it with virtual
// time.
func (t *Transport) Sweep(elapsed time.Duration) {
	limit, pressed := t.lim.Load().WriteTimeout, base.Pressed(t.h)
	// The time in which this process did not run does not count against the clients.
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

// watch is the state that the reaper keeps about a connection between two sweeps.
type watch struct {
	writes uint64
	unsent int
	stuck  time.Duration
	in     int64
	idle   time.Duration
}

// stuckFor returns for how long a write has been in progress without the peer accepting a byte.
func (w *watch) stuckFor(c *conn, elapsed time.Duration) time.Duration {
	writes := c.writes.Load()
	if writes != w.writes || writes%2 == 0 {
		w.writes, w.unsent, w.stuck = writes, -2, 0
		return 0
	}
	unsent := unsent(rawConn(c.nc))
	if unsent != w.unsent || unsent == 0 { // if unsent is 0, the writer is late and not the peer
		w.unsent, w.stuck = unsent, 0
		return 0
	}
	w.stuck += elapsed
	return w.stuck
}

// idleFor notes that elapsed has passed. When c has received nothing for shrinkAfter, idleFor makes
// it return its large buffer, if it has one.
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
