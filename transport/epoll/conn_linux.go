package epoll

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// noSlot stands for no place in a list.
const noSlot = -1

// conn is one connection and its [transport.Peer]. What is not atomic or constant
// belongs to the loop that has the connection.
type conn struct {
	loop    atomic.Pointer[loop]
	woken   atomic.Bool // a Wake that no Feed has followed yet
	aborted atomic.Bool
	posted  atomic.Bool  // in the inbox of a loop
	patient atomic.Bool  // it may take nothing for as long as it likes: see [transport.Patient]
	input   atomic.Int32 // what the buffer of in takes, as its loop's tally knows of it
	output  atomic.Int32 // what out takes, likewise

	next transport.Next
	connFlags

	fd      int32  // -1 once closed
	opened  int32  // fd, which any goroutine may read: it does not change
	slot    int32  // noSlot: not on its loop yet, or no more
	watched int32  // place in the loop's watch list
	work    uint32 // work in the balancing interval epoch
	epoch   uint16

	session transport.Session // nil: only lingering
	in      unread            // received and not consumed
	out     base.Output       // not sent yet
	watch   slow
	tls     *tlsConn // nil without TLS

	unix          *net.UnixAddr // of the listener; nil for TCP
	remote, local netip.AddrPort
}

// connFlags is where a connection stands.
type connFlags struct {
	readable  bool // there may be something to read
	hup       bool // the peer will send no more than what is to be read
	eof       bool // and that has been read
	wantOut   bool // the kernel tells when there is room to write
	deferred  bool // a reply leaves at the end of the round
	queued    bool // in the loop's ready list
	finalFeed bool // the Feed for a Wake that came with the end has been had
}

// Wake implements [transport.Peer].
func (c *conn) Wake() {
	if !c.woken.Swap(true) {
		c.post()
	}
}

// Abort implements [transport.Peer].
func (c *conn) Abort() {
	if c.aborted.Swap(true) {
		return
	}
	if c.tls != nil {
		if x := c.tls.handshake.Load(); x != nil {
			x.Shorten(base.LongAgo())
		}
	}
	c.post()
}

// post has the loop look at c. Before the connection has a loop there is no need:
// a new one is looked at anyway.
func (c *conn) post() {
	for !c.posted.Swap(true) {
		if l := c.loop.Load(); l != nil {
			l.post(c)
			return
		}
		// Another goroutine may have relied on this post, and a loop may have been set meanwhile.
		c.posted.Store(false)
		if c.loop.Load() == nil {
			return
		}
	}
}

// RemoteAddr implements [transport.Peer].
func (c *conn) RemoteAddr() net.Addr {
	if c.unix != nil {
		return c.unix
	}
	return net.TCPAddrFromAddrPort(c.remote)
}

// LocalAddr implements [transport.Peer].
func (c *conn) LocalAddr() net.Addr {
	if c.unix != nil {
		return c.unix
	}
	return net.TCPAddrFromAddrPort(c.local)
}

// Descriptor implements [transport.Described].
func (c *conn) Descriptor() int { return int(c.opened) }

// BePatient implements [transport.Patient].
func (c *conn) BePatient() { c.patient.Store(true) }

// Held implements [transport.Peer].
func (c *conn) Held() (input, output int64) {
	return int64(c.input.Load()), int64(c.output.Load())
}

// end tells the session, if there is one, that its connection is gone.
func (c *conn) end() {
	if c.session != nil {
		c.session.Closed()
		c.session = nil
	}
}

// sent reports whether nothing is left to be sent.
func (c *conn) sent() bool { return c.out.Empty() && (c.tls == nil || c.tls.sent()) }

// waits reports whether there is something that may be sent.
func (c *conn) waits() bool { return c.out.Waits() || c.tls != nil && !c.tls.sent() }

// parked reports whether bytes are only kept, not fed.
func (c *conn) parked() bool { return c.next == transport.Park || c.next == transport.Wait }

// beginLinger makes c a connection that is only waited for to close; false means
// that there are too many already.
func (c *conn) beginLinger(e *Transport, patience time.Duration) bool {
	if e.lingering.Add(1) > base.MaxLingering {
		e.lingering.Add(-1)
		return false
	}
	c.watch.linger = patience
	return true
}
