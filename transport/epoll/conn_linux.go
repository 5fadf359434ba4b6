package epoll

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// noSlot means that a connection has no place in a list.
const noSlot = -1

// conn is one connection and its [transport.Peer]. Fields that are neither atomic nor constant
// belong to the loop that has the connection.
type conn struct {
	loop    atomic.Pointer[loop]
	woken   atomic.Bool // Wake was called and Feed was not called since then
	aborted atomic.Bool
	posted  atomic.Bool  // the connection is in the mailbox of a loop
	patient atomic.Bool  // the connection is exempt from the write timeout: see [transport.Patient]
	input   atomic.Int32 // size in bytes of the buffer of in, as the tally of the loop counts it
	output  atomic.Int32 // bytes of memory that out takes, as the tally of the loop counts them

	next transport.Next
	connFlags

	fd      int32  // the descriptor; -1 once the connection is closed
	opened  int32  // the descriptor, even after fd has become -1; it never changes, so any goroutine may read it
	slot    int32  // index in the connections of the loop; noSlot if the connection is not on its loop
	watched int32  // index in the watch list of the loop, or noSlot
	work    uint32 // units of work done in the interval with the number epoch: see [balance]
	epoch   uint16

	session transport.Session // the session; nil if the connection only lingers
	in      unread            // the bytes that were received and not consumed
	out     base.Output       // the output that is not sent yet
	watch   slow
	tls     *tlsConn // the TLS state; nil without TLS

	unix          *net.UnixAddr // the address of a listener on a unix socket; nil for TCP
	remote, local netip.AddrPort
}

// connFlags is the state of a connection.
type connFlags struct {
	readable  bool // there may be something to read
	hup       bool // the peer sends no more, but there may be bytes to read
	eof       bool // the peer sends no more, and all its bytes have been read
	wantOut   bool // whether the connection is subscribed to the event that there is room to write
	deferred  bool // a reply waits for the end of the round
	queued    bool // whether the connection is in the ready list of the loop
	finalFeed bool // a Wake that came with the end of input was followed by its Feed
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

// post makes the loop run c. Before c has a loop this is not needed: a loop runs new connections
// anyway.
func (c *conn) post() {
	for !c.posted.Swap(true) {
		if l := c.loop.Load(); l != nil {
			l.post(c)
			return
		}
		// Another goroutine may have relied on this post, and c may have got a loop meanwhile, so c
		// is posted again.
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

func (c *conn) end() {
	if c.session != nil {
		c.session.Closed()
		c.session = nil
	}
}

// sent reports whether all output has been sent.
func (c *conn) sent() bool { return c.out.Empty() && (c.tls == nil || c.tls.sent()) }

// waits reports whether there is output that may be sent now.
func (c *conn) waits() bool { return c.out.Waits() || c.tls != nil && !c.tls.sent() }

// parked reports whether received bytes are kept and not fed.
func (c *conn) parked() bool { return c.next == transport.Park || c.next == transport.Wait }

// beginLinger makes c a connection that only waits for the peer to close, for at most patience. It
// returns false if too many connections linger already.
func (c *conn) beginLinger(e *Transport, patience time.Duration) bool {
	if e.lingering.Add(1) > base.MaxLingering {
		e.lingering.Add(-1)
		return false
	}
	c.watch.linger = patience
	return true
}
