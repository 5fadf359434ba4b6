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

// tlsConn is the TLS part of a connection of an event loop. It is also the [net.Conn] below
// crypto/tls. A goroutine, which may block, runs the handshake over a duplicate of the descriptor.
// After that Read is recv, which never blocks, and Write appends records to sealed.
//
// Until the handshake is over a tlsConn belongs to the goroutine of the handshake, then to the
// loop.
type tlsConn struct {
	c         *conn
	conn      *tls.Conn // the TLS connection; nil before the handshake
	handshake atomic.Pointer[handshake]
	sealed    []byte // records that are not sent completely
	at        int    // sealed[:at] has been sent

	drained bool  // there is nothing to read before the next event
	room    int32 // the size of the buffer that crypto/tls reads into
}

// tlsScratch is memory that all TLS connections of a loop share.
type tlsScratch struct {
	sealed []byte // buffer for the records of a short reply
	plain  []byte // buffer for the plain text of one record
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

// Close implements [net.Conn] and does nothing: the loop closes the connection.
func (s *tlsConn) Close() error { return nil }

// LocalAddr implements [net.Conn].
func (s *tlsConn) LocalAddr() net.Addr { return s.c.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (s *tlsConn) RemoteAddr() net.Addr { return s.c.RemoteAddr() }

// SetDeadline implements [net.Conn] and does nothing, like SetReadDeadline and SetWriteDeadline:
// the loop never blocks, and [handshake] has the deadline of the handshake.
func (s *tlsConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements [net.Conn].
func (s *tlsConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements [net.Conn].
func (s *tlsConn) SetWriteDeadline(time.Time) error { return nil }

// sent reports whether all records have been sent.
func (s *tlsConn) sent() bool { return s.at == len(s.sealed) }

// drop discards unsent records and the state of crypto/tls.
func (s *tlsConn) drop() {
	s.conn, s.sealed, s.at, s.room = nil, nil, 0, 0
}

// maxSeal is the maximum number of bytes of a reply that are encrypted at once. The rest of the
// reply is not copied yet: it may be memory of the keyspace, while records are copies.
const maxSeal = 64 << 10

// transmitSealed passes records to the kernel. When all records have been sent it encrypts the next
// part of the reply. n is the number of bytes of records that the kernel has taken. errno is EPIPE
// if the encryption fails.
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

// sealNext encrypts the next part of the reply, of up to maxSeal bytes, and releases that part.
func (l *loop) sealNext(c *conn) error {
	parts, n := c.out.Gather(l.parts[:0], maxSeal)
	defer clear(parts)
	var next []byte
	switch len(parts) {
	case 0: // all pieces are empty
	case 1:
		next = parts[0]
	default: // many short parts are sent in one record
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

// sendRest sends the remaining records if the kernel accepts them, and does not retry.
func (l *loop) sendRest(c *conn) {
	if s := c.tls; !s.sent() {
		n, _ := send(c.fd, s.sealed[s.at:])
		s.at += n
	}
}

// sendCloseNotify sends the close_notify alert of TLS, if all output has been sent. Without it the
// client cannot tell the end of the connection from a truncation by an attacker.
func (l *loop) sendCloseNotify(c *conn) {
	if c.tls == nil || !c.sent() {
		return
	}
	if c.tls.conn.CloseWrite() == nil {
		l.sendRest(c)
	}
}

// arrived prepares a connection after its handshake, or after a move from another loop: there may
// be input for which no event will come.
func (l *loop) arrived(c *conn) {
	c.tls.drained, c.readable = false, true
}

// errWouldBlock is the error of Read when there is nothing to read. crypto/tls can continue after
// an error only if its Temporary returns true, as for an error of a deadline. During a handshake it
// cannot continue after any error.
var errWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

// Error returns the text of the error.
func (wouldBlock) Error() string { return "transport: nothing to read" }

// Timeout returns true, as for the error of a deadline.
func (wouldBlock) Timeout() bool { return true }

// Temporary returns true, so that crypto/tls can continue after the error.
func (wouldBlock) Temporary() bool { return true }
