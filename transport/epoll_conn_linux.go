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
	if c.aborted.Swap(true) {
		return
	}
	if c.tls != nil {
		if x := c.tls.early.Load(); x != nil {
			x.hurry(longAgo())
		}
	}
	c.post()
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

// Descriptor implements [Described].
func (c *epollConn) Descriptor() int { return int(c.opened) }

// BePatient implements [Patient].
func (c *epollConn) BePatient() { c.patient.Store(true) }

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

// sent reports whether all records have left.
func (s *secure) sent() bool { return s.at == len(s.sealed) }

// hurry implements [handshaker].
func (x *earlyConn) hurry(by time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by.IsZero() || by.Before(x.by) {
		x.by = by
	}
	if x.file != nil {
		_ = x.file.SetDeadline(x.by) // fails on a closed file only, which needs none
	}
}

// sent reports whether nothing is left to be sent.
func (c *epollConn) sent() bool { return c.out.empty() && (c.tls == nil || c.tls.sent()) }

// waits reports whether there is something that may be sent.
func (c *epollConn) waits() bool { return c.out.waits() || c.tls != nil && !c.tls.sent() }

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

// forget drops n bytes of the reply of c that have left.
func (l *loop) forget(c *epollConn, n int) {
	b := c.out.b
	if c.out.sent(n); c.out.b == nil {
		l.reclaim(b)
	}
}

// reclaim takes back a buffer that has been sent, if it may be one that was lent.
func (l *loop) reclaim(b []byte) {
	if cap(b) == spareSize && len(l.spares) < maxSpares {
		l.spares = append(l.spares, b[:0])
	}
}

// A reply of up to spareSize bytes that waits for the log does so in a buffer that the
// loop lends, of which it keeps no more than maxSpares.
const (
	spareSize = 1 << 10
	maxSpares = 512
)
