package transport

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Read implements [net.Conn] for crypto/tls.
func (s *secure) Read(p []byte) (int, error) {
	s.room = max(s.room, int32(min(len(p), 1<<30)))
	if x := s.early.Load(); x != nil {
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
func (s *secure) Write(p []byte) (int, error) {
	if x := s.early.Load(); x != nil {
		return x.file.Write(p)
	}
	s.sealed = append(s.sealed, p...)
	return len(p), nil
}

// Close implements [net.Conn] and does nothing: the loop closes.
func (s *secure) Close() error { return nil }

// LocalAddr implements [net.Conn].
func (s *secure) LocalAddr() net.Addr { return s.c.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (s *secure) RemoteAddr() net.Addr { return s.c.RemoteAddr() }

// SetDeadline implements [net.Conn] and does nothing, as its siblings: the loop waits for
// nobody, and [earlyConn] has the deadline of the handshake.
func (s *secure) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements [net.Conn].
func (s *secure) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements [net.Conn].
func (s *secure) SetWriteDeadline(time.Time) error { return nil }

// drop gives up what has not left, and what crypto/tls keeps.
func (s *secure) drop() {
	s.conn, s.sealed, s.at, s.room = nil, nil, 0, 0
}

// sealMost is how much of a reply becomes records at once. The rest is kept as it is: it
// may lie in the store, and records are copies.
const sealMost = 64 << 10

// transmitSealed hands the kernel records, which it makes of the reply when all that
// there are have left.
func (l *loop) transmitSealed(c *epollConn) (n int, errno unix.Errno) {
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
	if s.at += n; s.sent() && c.out.empty() {
		s.sealed, s.at = nil, 0
	}
	return n, 0
}

// sealNext makes records of the next part of the reply, and lets go of that.
func (l *loop) sealNext(c *epollConn) error {
	parts, n := c.out.gather(l.parts[:0], sealMost)
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
	l.forget(c, n)
	l.tally.sent(n)
	return err
}

// sendRest sends records that nobody waits for, if the kernel takes them.
func (l *loop) sendRest(c *epollConn) {
	if s := c.tls; !s.sent() {
		n, _ := send(c.fd, s.sealed[s.at:])
		s.at += n
	}
}

// sayGoodbye tells a client with TLS that no more will come: without that the end could
// be the work of somebody between.
func (l *loop) sayGoodbye(c *epollConn) {
	if c.tls == nil || !c.sent() {
		return
	}
	if c.tls.conn.CloseWrite() == nil {
		l.sendRest(c)
	}
}

// arrived takes in a connection that has been through its handshake, or comes from
// another loop: there may be input that no event will tell of.
func (l *loop) arrived(c *epollConn) {
	c.tls.drained, c.readable = false, true
}

// shakeHands has the handshake of c done, which then goes to a loop.
func (e *Epoll) shakeHands(c *epollConn, conf *tls.Config) {
	x := &earlyConn{e: e, c: c, conf: conf}
	c.tls.early.Store(x)
	e.handshakes.begin(x)
}

// open duplicates the descriptor. To close the duplicate does not end the connection.
func (x *earlyConn) open() error {
	dup, err := unix.FcntlInt(uintptr(x.c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.file = os.NewFile(uintptr(dup), "client")
	return nil
}

// shake implements [handshaker].
func (x *earlyConn) shake(by time.Time) {
	if x.c.aborted.Load() {
		x.giveUp()
		return
	}
	if err := x.open(); err != nil {
		x.e.log.Warn("a TLS handshake cannot begin", "error", err)
		x.giveUp()
		return
	}
	x.hurry(by)
	c, s := x.c, x.c.tls
	s.conn = tls.Server(s, x.conf)
	err := s.conn.Handshake()
	if err != nil {
		logHandshake(x.e.log, c.RemoteAddr(), err)
		if why := explanation(x.e.h, err); why != nil {
			_, _ = unix.Write(int(c.fd), why) // fits into an empty socket, or the peer is gone
			x.linger()
		} else {
			x.giveUp()
		}
		return
	}
	_ = x.file.Close() // what was written has left, or never will
	identify(c.session, s.conn)
	s.early.Store(nil)
	x.e.adopt(c)
}

// giveUp implements [handshaker].
func (x *earlyConn) giveUp() {
	x.c.end()
	x.closeFile()
	_ = unix.Close(int(x.c.fd)) // nothing was promised to it
	x.c.fd = -1
}

// linger has a loop wait for the client to read what it was told.
func (x *earlyConn) linger() {
	c := x.c
	if unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil || !c.beginLinger(x.e, x.e.lim.Load().Linger) {
		x.giveUp()
		return
	}
	c.end()
	x.closeFile()
	c.tls.early.Store(nil)
	x.e.adopt(c)
}

// closeFile closes the duplicate, if there is one.
func (x *earlyConn) closeFile() {
	if x.file != nil {
		_ = x.file.Close() // the connection ends
	}
}
