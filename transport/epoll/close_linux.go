package epoll

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// watched holds the connections that the sweep checks.
type watched struct {
	watch []*conn   // the connections whose peer is slow to read, or that linger
	swept time.Time // the last sweep; zero while no connection is watched
}

// slow is the state that the sweep keeps about a connection.
type slow struct {
	sent    bool // whether the peer has accepted bytes since the last sweep
	unsent  int32
	stuck   time.Duration // time for which the peer has accepted nothing, or for which the connection has lingered
	linger  time.Duration // maximum time to linger; 0 if the connection does not linger
	dropped int32         // number of bytes discarded while lingering
}

// hangUp closes c after everything is sent. Closing a socket with unread input resets it, and a
// reset can overtake the last reply. So the sending side is closed first, and input is discarded
// for a short time, until the peer has closed too. If the peer sends no more, or too many
// connections linger already, hangUp closes c at once.
func (l *loop) hangUp(c *conn) {
	patience := l.t.lim.Load().Linger
	if l.draining {
		patience = base.StopLinger
	}
	// Call Closed before the peer can see the end of the connection. So a client that reconnects at
	// once is not refused because its old connection still counts.
	c.end()
	c.in.drop()
	l.count(c)
	l.sendCloseNotify(c)
	if c.eof || unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil || !c.beginLinger(l.t, patience) {
		l.close(c)
		return
	}
	l.keepWatch(c)
	c.readable = true
	l.discard(c)
}

// discard reads and discards what a lingering connection sends. It closes c at the end of input,
// after an error, and after more than [base.LingerBytes]. If there is still input after four reads,
// it enqueues c.
func (l *loop) discard(c *conn) {
	for range 4 {
		n, errno := recv(c.fd, l.in)
		if errno == unix.EAGAIN {
			return
		}
		c.watch.dropped += int32(n)
		if errno != 0 || n == 0 || c.watch.dropped > base.LingerBytes {
			l.close(c)
			return
		}
	}
	l.enqueue(c)
}

// close closes c at once, in any state. It does nothing if c has been closed.
func (l *loop) close(c *conn) {
	if c.fd < 0 {
		return
	}
	c.end()
	if c.watch.linger > 0 {
		l.t.lingering.Add(-1)
	}
	if c.watched != noSlot {
		l.unwatch(c)
	}
	c.out.Drop()
	c.in.drop()
	if c.tls != nil {
		c.tls.drop()
	}
	l.count(c)
	_ = unix.Close(int(c.fd)) // the kernel closes the descriptor even if it returns an error
	c.fd = -1
	l.vacate(c)
}

func (l *loop) keepWatch(c *conn) {
	if c.watched == noSlot {
		c.watched = int32(len(l.watch))
		l.watch = append(l.watch, c)
		c.watch.sent, c.watch.stuck = true, 0
	}
}

func (l *loop) unwatch(c *conn) {
	last := len(l.watch) - 1
	l.watch[c.watched] = l.watch[last]
	l.watch[c.watched].watched = c.watched
	l.watch[last] = nil
	l.watch = l.watch[:last]
	c.watched = noSlot
}

// sweepEvery returns the time between two checks of the watched connections. It is
// [base.StopLinger] while the transport stops.
func (l *loop) sweepEvery() time.Duration {
	if l.draining {
		return base.StopLinger
	}
	lim := l.t.lim.Load()
	return min(base.SweepEvery(lim.WriteTimeout), base.SweepEvery(lim.Linger))
}

// sweep checks the watched connections if sweepEvery has passed since the last sweep. It closes
// those that have lingered long enough and those whose peers have not read for too long. It does
// not read the clock while no connection is watched.
func (l *loop) sweep() {
	if len(l.watch) == 0 {
		l.swept = time.Time{}
		return
	}
	now := l.t.now()
	if l.swept.IsZero() {
		l.swept = now
	}
	limit, pressed := l.t.lim.Load().WriteTimeout, base.Pressed(l.t.h)
	elapsed := now.Sub(l.swept)
	if elapsed < l.sweepEvery() {
		return
	}
	l.swept = now
	// The time for which the loop itself was late does not count against the clients.
	elapsed = min(elapsed, 2*l.sweepEvery())
	for i := len(l.watch) - 1; i >= 0; i-- {
		if c := l.watch[i]; c.watch.linger > 0 {
			l.lingered(c, elapsed)
		} else if limit > 0 && (l.draining || !c.patient.Load()) {
			stuck := c.stuckFor(elapsed)
			if stuck >= limit || pressed && stuck >= limit/base.PressedShare && c.out.Counted() {
				l.tally.slowClosed++
				l.reset(c)
			}
		}
	}
}

// lingered adds elapsed to the time that c has lingered, and closes c when c has lingered long
// enough.
func (l *loop) lingered(c *conn, elapsed time.Duration) {
	if c.watch.stuck += elapsed; c.watch.stuck >= c.watch.linger {
		l.close(c)
	}
}

// stuckFor returns the time for which the peer has accepted nothing; 0 if it has accepted bytes
// since the last sweep. elapsed is the time since that sweep.
func (c *conn) stuckFor(elapsed time.Duration) time.Duration {
	unsent := int32(base.Unsent(int(c.fd)))
	if c.watch.sent || unsent != c.watch.unsent {
		c.watch.sent, c.watch.unsent, c.watch.stuck = false, unsent, 0
		return 0
	}
	c.watch.stuck += elapsed
	return c.watch.stuck
}

// reset closes c and discards the bytes that the kernel holds for the peer. Otherwise the kernel
// could hold megabytes for as long as the peer keeps its window shut.
func (l *loop) reset(c *conn) {
	// This fails only if the socket is closed already.
	_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	l.close(c)
}
