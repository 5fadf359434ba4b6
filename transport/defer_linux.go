package transport

// Short replies of a round leave together at its end: sending is a system call of some
// microseconds, which throws what sessions need out of the processor's caches, and those
// who are answered first would only come back one by one.

// maxDeferred is how long a reply may be that waits for the end of its round. Sending a
// longer one takes the kernel longer than it takes to find the memory again.
const maxDeferred = 4 << 10

// mostDeferred is how many replies wait together at most: what they save is saved by then,
// and the first of them waits for the turns of all others.
const mostDeferred = 64

// deferredReply is a reply that leaves at the end of the round: a part of deferBy.
type deferredReply struct {
	c        *epollConn
	from, to int
}

// postpone keeps a reply until the end of the round. Its connection does nothing before.
func (l *loop) postpone(c *epollConn, out []byte) {
	if len(l.deferred) >= mostDeferred {
		l.sendDeferred()
	}
	c.deferred = true
	from := len(l.deferBy)
	l.deferBy = append(l.deferBy, out...)
	l.deferred = append(l.deferred, deferredReply{c, from, len(l.deferBy)})
}

// sendDeferred sends the replies that have been postponed, in the order in which their
// connections had their turns.
func (l *loop) sendDeferred() {
	for i := range l.deferred {
		d := &l.deferred[i]
		c := d.c
		d.c = nil
		if c.fd < 0 {
			continue // closed meanwhile
		}
		c.deferred = false
		if l.reply(c, l.deferBy[d.from:d.to], nil, false); c.fd >= 0 {
			l.settle(c)
		}
		l.count(c)
		if c.fd >= 0 && c.woken.Load() {
			l.enqueue(c)
		}
	}
	l.deferred, l.deferBy = l.deferred[:0], l.deferBy[:0]
}
