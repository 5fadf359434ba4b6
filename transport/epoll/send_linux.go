package epoll

import (
	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// maxSend is the maximum number of bytes that one connection sends before other connections have
// their turn. The kernel takes about 50 to 100 microseconds for them. A lower value would slow a
// client that reads a lot, a higher one would delay its neighbours.
const maxSend = 256 << 10

// reply sends out, with refs between its bytes, and keeps what cannot be sent yet. After an error
// it closes c. If ours is set, the connection owns out and may keep it without a copy.
func (l *loop) reply(c *conn, out []byte, refs []shared.Ref, ours bool) {
	if c.tls != nil {
		l.replySealed(c, out, refs, ours)
		return
	}
	if c.out.Empty() && len(refs) == 0 && len(out) <= maxSend {
		n, errno := send(c.fd, out)
		l.tally.sent(n)
		if n == len(out) {
			return
		}
		if errno != 0 && errno != unix.EAGAIN {
			l.close(c)
			return
		}
		out = out[n:]
	}
	c.out.Add(out, refs, ours)
	l.flush(c)
}

// replySealed is reply for a connection with TLS. It encrypts a short reply into the loop's memory
// and sends it at once. A longer reply, or one with references, is encrypted in parts by flush.
func (l *loop) replySealed(c *conn, out []byte, refs []shared.Ref, ours bool) {
	s := c.tls
	if !c.sent() || len(refs) > 0 || len(out) > maxSeal {
		c.out.Add(out, refs, ours)
		l.flush(c)
		return
	}
	s.sealed = l.sealed[:0]
	_, err := s.conn.Write(out)
	l.sealed = s.sealed
	if err != nil {
		l.close(c)
		return
	}
	l.tally.sent(len(out))
	n, errno := send(c.fd, s.sealed)
	if rest := s.sealed[n:]; len(rest) == 0 {
		s.sealed = nil
	} else if errno != 0 && errno != unix.EAGAIN {
		l.close(c)
	} else {
		s.sealed, s.at = append([]byte(nil), rest...), 0
		l.flush(c)
	}
}

// flush sends output until the kernel accepts no more, or until c has sent maxSend bytes. In the
// first case it subscribes to the event that there is room again; in the second it enqueues c, so
// that other connections have their turn. It returns false if c was closed.
func (l *loop) flush(c *conn) bool {
	for left := maxSend; c.waits(); {
		if left <= 0 {
			l.enqueue(c)
			return true
		}
		n, errno := l.transmit(c, left)
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 {
			l.close(c)
			return false
		}
		left -= n
		c.watch.sent = true
	}
	if !c.waits() {
		if c.watched != noSlot {
			l.unwatch(c)
		}
		return true
	}
	l.keepWatch(c)
	if !c.wantOut {
		c.wantOut = true
		if !l.subscribe(c, unix.EPOLL_CTL_MOD) {
			l.close(c)
			return false
		}
	}
	return true
}

// transmit passes up to limit bytes of output to the kernel, and returns how many bytes the kernel
// has accepted. With TLS, limit does not apply: transmit passes whole records.
func (l *loop) transmit(c *conn, limit int) (n int, errno unix.Errno) {
	switch {
	case c.tls != nil:
		return l.transmitSealed(c)
	case !c.out.HasRefs():
		n, errno = send(c.fd, c.out.Next(limit))
	default:
		parts, _ := c.out.Gather(l.parts[:0], limit)
		n, errno = sendParts(c.fd, parts, &l.iovecs)
		clear(parts)
	}
	if errno == 0 {
		l.dropSent(c, n)
		l.tally.sent(n)
	}
	return n, errno
}

// dropSent removes n sent bytes from the output of c.
func (l *loop) dropSent(c *conn, n int) {
	b := c.out.B
	if c.out.Sent(n); c.out.B == nil {
		l.reclaim(b)
	}
}

// afterTurn decides how c continues after its turn: it enqueues c for another turn, hangs up, or
// does nothing because an event will run c again.
func (l *loop) afterTurn(c *conn) {
	if c.next == transport.Wait && c.hup {
		c.eof = true // the client sends nothing more, so waiting for it has no purpose
	}
	if c.deferred || !c.sent() || c.out.Barrier != 0 {
		return // room in the socket, the barrier or the sweep will run c again
	}
	ending := (c.eof || l.draining) && (c.next == transport.Read || c.next == transport.Wait)
	switch {
	case ending && c.woken.Load() && !c.finalFeed:
		c.finalFeed = true
		l.enqueue(c)
	case ending || c.next == transport.Close:
		l.hangUp(c)
	case c.next == transport.Again, c.readable && (c.next == transport.Read || c.in.len() < l.t.lim.Load().Backlog):
		l.enqueue(c)
	}
}
