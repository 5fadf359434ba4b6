package epoll

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// handshake is a connection before it has an event loop: a goroutine runs the TLS handshake over a
// duplicate of the descriptor. It implements [base.Handshaker].
type handshake struct {
	t    *Transport
	c    *conn
	conf *tls.Config

	mu   sync.Mutex
	file *os.File  // the duplicate; nil before the handshake; guarded by mu, but the goroutine of the handshake may read it without
	by   time.Time // deadline of the handshake; guarded by mu
}

// Shorten implements [base.Handshaker].
func (x *handshake) Shorten(by time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by.IsZero() || by.Before(x.by) {
		x.by = by
	}
	if x.file != nil {
		_ = x.file.SetDeadline(x.by) // fails only if the file is closed; then no deadline is needed
	}
}

// shakeHands starts the handshake of c. After the handshake, c goes to a loop.
func (t *Transport) shakeHands(c *conn, conf *tls.Config) {
	x := &handshake{t: t, c: c, conf: conf}
	c.tls.handshake.Store(x)
	t.handshakes.Begin(x)
}

// open duplicates the descriptor. Closing the duplicate does not end the connection.
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

// Handshake implements [base.Handshaker].
func (x *handshake) Handshake(by time.Time) {
	if x.c.aborted.Load() {
		x.GiveUp()
		return
	}
	if err := x.open(); err != nil {
		x.t.log.Warn("a TLS handshake cannot begin", "error", err)
		x.GiveUp()
		return
	}
	x.Shorten(by)
	c, s := x.c, x.c.tls
	s.conn = tls.Server(s, x.conf)
	err := s.conn.Handshake()
	if err != nil {
		base.LogHandshake(x.t.log, c.RemoteAddr(), err)
		if why := base.Explanation(x.t.h, err); why != nil {
			_, _ = unix.Write(int(c.fd), why) // the message fits into an empty socket buffer, unless the peer is gone
			x.linger()
		} else {
			x.GiveUp()
		}
		return
	}
	_ = x.file.Close() // an error does not matter: all data has been written, or cannot be written
	base.Identify(c.session, s.conn)
	s.handshake.Store(nil)
	x.t.assign(c)
}

// GiveUp implements [base.Handshaker].
func (x *handshake) GiveUp() {
	x.c.end()
	x.closeFile()
	_ = unix.Close(int(x.c.fd)) // the client has not received anything yet
	x.c.fd = -1
}

// linger makes a loop wait until the client has read the message and closed. If too many
// connections linger already, it closes c at once.
func (x *handshake) linger() {
	c := x.c
	if unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil || !c.beginLinger(x.t, x.t.lim.Load().Linger) {
		x.GiveUp()
		return
	}
	c.end()
	x.closeFile()
	c.tls.handshake.Store(nil)
	x.t.assign(c)
}

func (x *handshake) closeFile() {
	if x.file != nil {
		_ = x.file.Close() // the connection ends, so an error does not matter
	}
}
