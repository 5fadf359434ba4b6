package epoll

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// earlyConn is a connection of an event loop before its loop: a goroutine does the
// handshake over a duplicate of the descriptor. It implements [handshaker].
type handshake struct {
	e    *Transport
	c    *conn
	conf *tls.Config

	mu   sync.Mutex
	file *os.File  // guarded by mu, but who shakes hands reads it; nil before
	by   time.Time // guarded by mu; when the handshake has to end
}

// hurry implements [handshaker].
func (x *handshake) Shorten(by time.Time) {
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
func (t *Transport) shakeHands(c *conn, conf *tls.Config) {
	x := &handshake{e: t, c: c, conf: conf}
	c.tls.early.Store(x)
	t.handshakes.Begin(x)
}

// open duplicates the descriptor. To close the duplicate does not end the connection.
func (x *handshake) open() error {
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
func (x *handshake) Handshake(by time.Time) {
	if x.c.aborted.Load() {
		x.GiveUp()
		return
	}
	if err := x.open(); err != nil {
		x.e.log.Warn("a TLS handshake cannot begin", "error", err)
		x.GiveUp()
		return
	}
	x.Shorten(by)
	c, s := x.c, x.c.tls
	s.conn = tls.Server(s, x.conf)
	err := s.conn.Handshake()
	if err != nil {
		base.LogHandshake(x.e.log, c.RemoteAddr(), err)
		if why := base.Explanation(x.e.h, err); why != nil {
			_, _ = unix.Write(int(c.fd), why) // fits into an empty socket, or the peer is gone
			x.linger()
		} else {
			x.GiveUp()
		}
		return
	}
	_ = x.file.Close() // what was written has left, or never will
	base.Identify(c.session, s.conn)
	s.early.Store(nil)
	x.e.adopt(c)
}

// giveUp implements [handshaker].
func (x *handshake) GiveUp() {
	x.c.end()
	x.closeFile()
	_ = unix.Close(int(x.c.fd)) // nothing was promised to it
	x.c.fd = -1
}

// linger has a loop wait for the client to read what it was told.
func (x *handshake) linger() {
	c := x.c
	if unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil || !c.beginLinger(x.e, x.e.lim.Load().Linger) {
		x.GiveUp()
		return
	}
	c.end()
	x.closeFile()
	c.tls.early.Store(nil)
	x.e.adopt(c)
}

// closeFile closes the duplicate, if there is one.
func (x *handshake) closeFile() {
	if x.file != nil {
		_ = x.file.Close() // the connection ends
	}
}
