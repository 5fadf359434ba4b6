package epoll

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// tlsConn is the part of a connection of an event loop that has TLS. It also is the
// network, a [net.Conn], that crypto/tls sees: the handshake is done by a goroutine that
// may wait, over a duplicate of the descriptor. After it Read is recv, which never waits,
// and Write leaves records in sealed.
//
// Until the handshake is over it belongs to the goroutine that does it, afterwards to the loop.
type tlsConn struct {
	c         *conn
	conn      *tls.Conn // nil before the handshake
	handshake atomic.Pointer[handshake]
	sealed    []byte // records that have not left
	at        int    // sealed[:at] has

	drained bool  // there is nothing to read before the next event
	room    int32 // the size of the buffer that crypto/tls reads into
}

// tlsScratch is what all connections with TLS share.
type tlsScratch struct {
	sealed []byte // records of a short reply
	plain  []byte // what becomes a record together
}

// Read implements [net.Conn] for crypto/tls.
func (s *tlsConn) Read(p []byte) (int, error) {
	s.room = max(s.room, int32(min(len(p), 1<<30)))
	if x := s.handshake.Load(); x != nil {
		return x.file.Read(p)
	}
	if s.drained && !s.c.hup {
		return 0, errWouldBlock
	}
	n, errno := recv(s.c.fd, p)
	s.drained = n < len(p)
	switch {
	case errno == unix.EAGAIN:
		return 0, errWouldBlock
	case errno != 0:
		return 0, os.NewSyscallError("recv", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements [net.Conn] for crypto/tls.
func (s *tlsConn) Write(p []byte) (int, error) {
	if x := s.handshake.Load(); x != nil {
		return x.file.Write(p)
	}
	s.sealed = append(s.sealed, p...)
	return len(p), nil
}

// Close implements [net.Conn] and does nothing: the loop closes.
func (s *tlsConn) Close() error { return nil }

// LocalAddr implements [net.Conn].
func (s *tlsConn) LocalAddr() net.Addr { return s.c.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (s *tlsConn) RemoteAddr() net.Addr { return s.c.RemoteAddr() }

// SetDeadline implements [net.Conn] and does nothing, as its siblings: the loop never
// waits, and [handshake] has the deadline of the handshake.
func (s *tlsConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements [net.Conn].
func (s *tlsConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements [net.Conn].
func (s *tlsConn) SetWriteDeadline(time.Time) error { return nil }

// sent reports whether all records have left.
func (s *tlsConn) sent() bool { return s.at == len(s.sealed) }

// drop gives up what has not left, and what crypto/tls keeps.
func (s *tlsConn) drop() {
	s.conn, s.sealed, s.at, s.room = nil, nil, 0, 0
}

// maxSeal is how much of a reply becomes records at once. The rest is kept as it is: it
// may lie in the store, and records are copies.
const maxSeal = 64 << 10

// transmitSealed hands the kernel records, which it makes of the reply when all that
// there are have left.
func (l *loop) transmitSealed(c *conn) (n int, errno unix.Errno) {
	s := c.tls
	if s.sent() {
		s.sealed, s.at = s.sealed[:0], 0
		if err := l.sealNext(c); err != nil {
			return 0, unix.EPIPE
		}
	}
	if n, errno = send(c.fd, s.sealed[s.at:]); errno != 0 {
		return 0, errno
	}
	if s.at += n; s.sent() && c.out.Empty() {
		s.sealed, s.at = nil, 0
	}
	return n, 0
}

// sealNext makes records of the next part of the reply, and lets go of that.
func (l *loop) sealNext(c *conn) error {
	parts, n := c.out.Gather(l.parts[:0], maxSeal)
	defer clear(parts)
	var next []byte
	switch len(parts) {
	case 0: // there is nothing in the pieces
	case 1:
		next = parts[0]
	default: // one record for many short parts
		l.plain = l.plain[:0]
		for _, p := range parts {
			l.plain = append(l.plain, p...)
		}
		next = l.plain
	}
	_, err := c.tls.conn.Write(next)
	l.dropSent(c, n)
	l.tally.sent(n)
	return err
}

// sendRest sends the remaining records if the kernel takes them, and does not retry.
func (l *loop) sendRest(c *conn) {
	if s := c.tls; !s.sent() {
		n, _ := send(c.fd, s.sealed[s.at:])
		s.at += n
	}
}

// sendCloseNotify sends the close_notify alert of TLS. Without it the client cannot tell the end
// of the connection from a truncation by an attacker.
func (l *loop) sendCloseNotify(c *conn) {
	if c.tls == nil || !c.sent() {
		return
	}
	if c.tls.conn.CloseWrite() == nil {
		l.sendRest(c)
	}
}

// arrived takes in a connection that has been through its handshake, or comes from
// another loop: there may be input that no event will tell of.
func (l *loop) arrived(c *conn) {
	c.tls.drained, c.readable = false, true
}

// errWouldBlock is what an event loop's connection says to crypto/tls when there is
// nothing to read: crypto/tls keeps its state after an error that is Temporary, and only
// then. It relies on that for deadlines too. During a handshake no error is.
var errWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

// Error implements error.
func (wouldBlock) Error() string { return "transport: nothing to read" }

// Timeout implements [net.Error].
func (wouldBlock) Timeout() bool { return true }

// Temporary implements [net.Error].
func (wouldBlock) Temporary() bool { return true }
