package transport

import (
	"net"
	"time"
)

// Wake implements [Peer].
func (c *epollConn) Wake() {
	if !c.woken.Swap(true) {
		c.post()
	}
}

// Abort implements [Peer].
func (c *epollConn) Abort() {
	if !c.aborted.Swap(true) {
		c.post()
	}
}

// post has the loop look at c. Before the connection has a loop there is no need:
// a new one is looked at anyway.
func (c *epollConn) post() {
	for !c.posted.Swap(true) {
		if l := c.loop.Load(); l != nil {
			l.post(c)
			return
		}
		// Somebody else may have relied on this post, and a loop come in between.
		c.posted.Store(false)
		if c.loop.Load() == nil {
			return
		}
	}
}

// RemoteAddr implements [Peer].
func (c *epollConn) RemoteAddr() net.Addr {
	if c.unix != nil {
		return c.unix
	}
	return net.TCPAddrFromAddrPort(c.remote)
}

// LocalAddr implements [Peer].
func (c *epollConn) LocalAddr() net.Addr {
	if c.unix != nil {
		return c.unix
	}
	return net.TCPAddrFromAddrPort(c.local)
}

// Held implements [Peer].
func (c *epollConn) Held() (input, output int64) {
	return int64(c.input.Load()), int64(c.output.Load())
}

// end tells the session, if there is one, that its connection is gone.
func (c *epollConn) end() {
	if c.session != nil {
		c.session.Closed()
		c.session = nil
	}
}

// parked reports whether bytes are only kept, not fed.
func (c *epollConn) parked() bool { return c.next == Park || c.next == Wait }

// beginLinger makes c a connection that is only waited for to close; false means
// that there are too many already.
func (c *epollConn) beginLinger(e *Epoll, patience time.Duration) bool {
	if e.lingering.Add(1) > maxLingering {
		e.lingering.Add(-1)
		return false
	}
	c.watch.linger = patience
	return true
}
