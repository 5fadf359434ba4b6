package transport

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// earlyConn is a connection of an event loop before its loop: a goroutine does the
// handshake over a duplicate of the descriptor. It implements [handshaker].
type earlyConn struct {
	e    *Epoll
	c    *epollConn
	conf *tls.Config

	mu   sync.Mutex
	file *os.File  // guarded by mu, but who shakes hands reads it; nil before
	by   time.Time // guarded by mu; when the handshake has to end
}

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
