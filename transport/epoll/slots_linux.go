package epoll

import (
	"math"

	"golang.org/x/sys/unix"
)

// all calls do for every connection of the loop.
func (l *loop) all(do func(*loop, *conn)) {
	for i := range l.slots {
		if c := l.slots[i]; c != nil {
			do(l, c)
		}
	}
}

// subscribe sets the epoll events of c. It returns false if the kernel has no memory for them.
func (l *loop) subscribe(c *conn, op int) bool {
	e := unix.EpollEvent{Events: readEvents, Fd: c.slot, Pad: c.fd}
	if c.wantOut {
		e.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(l.ep, op, int(c.fd), &e) == nil
}

// enqueue makes the loop run c in the next round.
func (l *loop) enqueue(c *conn) {
	if !c.queued {
		c.queued = true
		l.ready = append(l.ready, c)
	}
}

// vacate frees the slot of c. After a move, mail about c may reach the new loop before c does. Then
// c must not seem to have a slot there.
func (l *loop) vacate(c *conn) {
	l.slots[c.slot] = nil
	l.free = append(l.free, c.slot)
	c.slot = noSlot
	l.conns.Add(-1)
}

// count updates the counters of the loop and of c after a change of the memory that c holds.
func (l *loop) count(c *conn) {
	size, kept := c.in.size(), c.out.Kept()
	if c.tls != nil {
		size += c.tls.room
		kept += len(c.tls.sealed) - c.tls.at
	}
	if old := c.input.Load(); size != old {
		l.tally.unread += int64(size - old)
		c.input.Store(size)
	}
	if n, old := int32(min(kept, math.MaxInt32)), c.output.Load(); n != old {
		l.tally.pending += int64(n - old)
		c.output.Store(n)
	}
}
