package epoll

import (
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// pendingReplies are the replies of a round that wait for the log.
type pendingReplies struct {
	held   []pendingReply // the replies of the round, until Durable has been called
	heldBy []byte         // the bytes of the replies in held
	spares [][]byte       // unused buffers for replies that wait beyond the end of the round
}

// pendingReply is a reply of this round that is kept for a while. Its bytes are part of heldBy if
// it waits for the log, or of deferBy if it only waits for the end of the round.
type pendingReply struct {
	c        *conn
	from, to int
}

// maxHeld is the size of held replies at which the round commits early. It is also the largest
// buffer that is kept for the next round.
const maxHeld = 1 << 20

// hold keeps a reply until the end of the round. Until then nothing else happens on c. The
// references and the barrier are kept in c.out.
func (l *loop) hold(c *conn, out []byte, refs []shared.Ref, barrier uint64) {
	c.out.Barrier = barrier
	c.out.Refer(refs, 0)
	from := len(l.heldBy)
	l.heldBy = append(l.heldBy, out...)
	l.held = append(l.held, pendingReply{c, from, len(l.heldBy)})
}

// commit calls Durable for the replies of this round. The first call writes the records that all of
// them wait for. commit sends the replies whose outcome is known.
func (l *loop) commit() {
	l.releaseReplies(l.held, l.heldBy, (*loop).flushPending)
	l.held = l.held[:0]
	if l.heldBy = l.heldBy[:0]; cap(l.heldBy) > maxHeld {
		l.heldBy = nil
	}
}

// releaseReplies calls send for each of the replies, which are parts of b. It leaves out the
// replies of connections that were closed or have moved to another loop meanwhile.
func (l *loop) releaseReplies(replies []pendingReply, b []byte, send func(l *loop, c *conn, out []byte)) {
	for i := range replies {
		h := &replies[i]
		c, out := h.c, b[h.from:h.to:h.to]
		h.c = nil
		if c.fd < 0 || c.loop.Load() != l {
			continue // the connection was closed meanwhile
		}
		send(l, c, out)
		l.count(c)
		if c.fd >= 0 && c.woken.Load() {
			l.enqueue(c)
		}
	}
}

// flushPending sends out, which waits for the barrier of c. If the outcome is still pending, it
// keeps out in c for longer.
func (l *loop) flushPending(c *conn, out []byte) {
	is := l.t.h.Durable(c.out.Barrier, c)
	refs := c.out.TakeRefs()
	if is == transport.Pending {
		l.lend(c, len(out))
		c.out.Add(out, refs, false)
		c.out.Held = len(out)
		return
	}
	c.out.Barrier = 0
	out, refs = base.Settle(c.session, is, out, refs)
	if l.reply(c, out, refs, false); c.fd >= 0 {
		l.afterTurn(c)
	}
}

// A reply of up to spareSize bytes that waits longer for the log is kept in a buffer that the loop
// lends. The loop keeps up to maxSpares unused ones.
const (
	spareSize = 1 << 10
	maxSpares = 512
)

// lend gives c, which is about to keep a reply of n bytes, a buffer of the loop, unless c has a
// buffer or n is more than spareSize.
func (l *loop) lend(c *conn, n int) {
	if c.out.B != nil || n > spareSize {
		return
	}
	last := len(l.spares) - 1
	if last < 0 {
		c.out.B = make([]byte, 0, spareSize)
		return
	}
	c.out.B = l.spares[last]
	l.spares = l.spares[:last]
}

// reclaim takes back the buffer of a sent reply, if it may be one that was lent and the loop has
// fewer than maxSpares.
func (l *loop) reclaim(b []byte) {
	if cap(b) == spareSize && len(l.spares) < maxSpares {
		l.spares = append(l.spares, b[:0])
	}
}
