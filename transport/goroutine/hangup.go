package goroutine

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/transport/internal/base"
	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// refuse sends the rejection to a connection without a session and closes it. A connection with TLS
// is only closed: its client could not read the reason before a handshake.
func (c *conn) refuse(rejection []byte) {
	defer c.t.unregister(c)
	if c.secure() != nil {
		c.Abort()
		return
	}
	_ = c.nc.SetDeadline(time.Now().Add(c.t.lim.Load().Linger)) // on a closed connection the write below fails too
	if len(rejection) > 0 {
		_, _ = c.nc.Write(rejection) // the client need not read the rejection
	}
	c.hangUp(true)
}

// hangUp closes the connection. Closing a socket with unread input resets it, and a reset can
// overtake the last reply. So hangUp closes the sending side first and discards input for a short
// time, until the peer has closed, too. If linger is false, it does so only during a graceful stop.
func (c *conn) hangUp(linger bool) {
	defer c.Abort()
	stopping := c.t.stopping()
	if secure := c.secure(); secure != nil && c.eof && !c.aborted.Load() {
		_ = secure.CloseWrite() // an error does not matter: the peer may be gone
	}
	if c.eof || c.aborted.Load() || (!linger && !stopping) {
		return
	}
	side, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || side.CloseWrite() != nil {
		return
	}
	defer c.t.lingering.Add(-1)
	if c.t.lingering.Add(1) > base.MaxLingering {
		return
	}
	patience := c.t.lim.Load().Linger
	if stopping {
		patience = base.StopLinger
	}
	c.discard(patience)
}

// discard reads until the peer closes, patience ends or the peer has sent [base.LingerBytes]. An
// interrupt removes the deadline of the read, so discard sets it before each read. A stop that
// begins meanwhile shortens the remaining time.
func (c *conn) discard(patience time.Duration) {
	end := time.Now().Add(patience)
	c.stopSeen = c.t.stopping()
	c.closing = true
	c.woken.Store(true) // set, so that a late Wake does not cut the lingering short
	waste := buffer.Get(buffer.MinSize)
	defer buffer.Put(waste)
	for total := 0; total < base.LingerBytes; {
		_ = c.nc.SetReadDeadline(end) // on a closed connection the read below fails too
		n, err := c.readInto(waste.B)
		total += n
		if !c.stopSeen && c.t.stopping() {
			c.stopSeen = true
			if sooner := time.Now().Add(base.StopLinger); sooner.Before(end) {
				end = sooner
			}
		}
		if err != nil && (!errors.Is(err, errInterrupted) || c.aborted.Load() || !time.Now().Before(end)) {
			return
		}
	}
}
