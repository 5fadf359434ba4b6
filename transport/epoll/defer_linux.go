package epoll

// Short replies of a round are sent together at its end. A send is a system call of some
// microseconds, which evicts the sessions' data from the processor's caches. Also, clients that got
// their replies earlier would send their next commands one by one.

// maxDeferredSize is the maximum size of a reply that waits for the end of its round. For a longer
// one the send takes longer than reloading the caches.
const maxDeferredSize = 4 << 10

// maxDeferredReplies is the maximum number of replies that wait together. More would save nothing,
// and the first of them waits for the turns of all others.
const maxDeferredReplies = 64

// postpone keeps a reply until the end of the round. Until then nothing else happens on c. If
// maxDeferredReplies replies wait already, postpone sends those first.
func (l *loop) postpone(c *conn, out []byte) {
	if len(l.deferred) >= maxDeferredReplies {
		l.sendDeferred()
	}
	c.deferred = true
	from := len(l.deferBy)
	l.deferBy = append(l.deferBy, out...)
	l.deferred = append(l.deferred, pendingReply{c, from, len(l.deferBy)})
}

// sendDeferred sends the postponed replies in the order of the turns of their connections.
func (l *loop) sendDeferred() {
	l.releaseReplies(l.deferred, l.deferBy, (*loop).sendOne)
	l.deferred, l.deferBy = l.deferred[:0], l.deferBy[:0]
}

func (l *loop) sendOne(c *conn, out []byte) {
	c.deferred = false
	if l.reply(c, out, nil, false); c.fd >= 0 {
		l.afterTurn(c)
	}
}
