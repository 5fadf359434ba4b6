package epoll

// Short replies of a round are sent together at its end. A send is a system call of some
// microseconds, which evicts what sessions need from the processor's caches. Clients that were
// answered earlier would also send their next commands one by one.

// maxDeferredSize is how long a reply may be that waits for the end of its round. Sending a
// longer one takes the kernel longer than it takes to find the memory again.
const maxDeferredSize = 4 << 10

// maxDeferredReplies is how many replies wait together at most. More would save nothing, and
// the first of them waits for the turns of all others.
const maxDeferredReplies = 64

// postpone keeps a reply until the end of the round. Its connection does nothing before.
func (l *loop) postpone(c *conn, out []byte) {
	if len(l.deferred) >= maxDeferredReplies {
		l.sendDeferred()
	}
	c.deferred = true
	from := len(l.deferBy)
	l.deferBy = append(l.deferBy, out...)
	l.deferred = append(l.deferred, pendingReply{c, from, len(l.deferBy)})
}

// sendDeferred sends the replies that have been postponed, in the order in which their
// connections had their turns.
func (l *loop) sendDeferred() {
	l.releaseReplies(l.deferred, l.deferBy, (*loop).sendOne)
	l.deferred, l.deferBy = l.deferred[:0], l.deferBy[:0]
}

// sendOne sends out, which has been postponed for c.
func (l *loop) sendOne(c *conn, out []byte) {
	c.deferred = false
	if l.reply(c, out, nil, false); c.fd >= 0 {
		l.afterTurn(c)
	}
}
