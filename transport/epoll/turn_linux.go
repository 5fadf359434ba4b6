package epoll

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport"
)

// maxOut is the size up to which the shared reply buffer is kept after a large reply.
const maxOut = 256 << 10

// maxTLSAnswer is the number of unsent bytes at which reading stops until they have been sent. TLS
// itself writes these bytes, for example in reply to requests for new keys.
const maxTLSAnswer = 4 << 10

// run does what c needs now: it sends waiting bytes, feeds the session once, and checks whether the
// connection ends. Code that changes the state that run reads has to call it.
func (l *loop) run(c *conn) {
	if c.loop.Load() != l {
		c.post() // the notice is passed to the loop that has c now
		return
	}
	if c.fd < 0 || c.slot == noSlot {
		return // the connection is gone, or not here yet; then admit will run it
	}
	l.serve(c)
	l.count(c)
}

// serve does the work of run for a connection that is open and belongs to this loop.
func (l *loop) serve(c *conn) {
	if c.aborted.Load() {
		if c.session != nil {
			l.sendCloseNotify(c)
		}
		l.close(c)
		return
	}
	if c.session == nil {
		l.discard(c)
		return
	}
	if c.deferred || c.out.Barrier != 0 && !l.durable(c) {
		return
	}
	if !c.sent() && !l.flush(c) {
		return
	}
	// The backlog would allow more, but the kernel still has plenty to send. Feeding now would only
	// make slow readers hold more memory.
	if c.sent() && c.next != transport.Close && !l.turn(c) {
		return
	}
	if c.tls != nil && !c.deferred && !c.tls.sent() && !l.flush(c) {
		return // TLS itself has bytes to send, such as an alert
	}
	l.afterTurn(c)
}

// turn feeds c if there is a reason to. If c is parked, turn only keeps the input that has arrived.
// It returns false if c was closed.
func (l *loop) turn(c *conn) bool {
	switch woken := c.woken.Load(); {
	case c.next == transport.Again:
		l.feed(c, c.in.bytes(), true)
	case c.next == transport.Read && c.readable && !l.draining:
		data, n, ok := l.read(c)
		if !ok {
			return false
		}
		if woken || n > 0 {
			l.feed(c, data, c.in.len() > 0)
		}
	case woken:
		l.feed(c, c.in.bytes(), true)
	case c.parked() && c.readable:
		return l.stash(c)
	}
	return c.fd >= 0
}

// read returns the unconsumed input of c followed by n bytes that have arrived. They are in the
// connection's own buffer, or, if that is empty, in the loop's. ok is false if c was closed.
func (l *loop) read(c *conn) (data []byte, n int, ok bool) {
	lim := l.t.lim.Load()
	had := c.in.len()
	var room []byte
	if had > smallRest {
		room = c.in.room(lim.MaxInput, lim.Chunk)
	} else {
		room = l.in[had : had+lim.Chunk]
	}
	if n, ok = l.receive(c, room); !ok {
		return nil, 0, false
	}
	switch {
	case had > smallRest:
		c.in.w += n
		return c.in.bytes(), n, true
	case n == 0:
		return c.in.bytes(), 0, true
	case had > 0:
		copy(l.in, c.in.bytes())
		c.in.drop()
	}
	return l.in[:had+n], n, true
}

// receive reads from the client into room and notes the outcome. n is 0 if there is nothing to read
// now, and at the end of input. ok is false if c was closed.
func (l *loop) receive(c *conn, room []byte) (n int, ok bool) {
	if c.tls == nil {
		n, errno := recv(c.fd, room)
		return n, l.received(c, n, len(room), errno)
	}
	s := c.tls
	var err error
	for err == nil && n < len(room) && len(s.sealed) < maxTLSAnswer {
		var m int
		m, err = s.conn.Read(room[n:])
		n += m
	}
	l.tally.received(n) // the bytes are counted without the overhead of TLS, as in Redis
	switch {
	case err == errWouldBlock: //nolint:errorlint // it is never wrapped, and this runs at each read
		c.readable = false
	case err == nil || n > 0:
		c.readable = true // the next read returns the error again
	case err == io.EOF: //nolint:errorlint // crypto/tls does not wrap it
		c.readable, c.eof = false, true
	default:
		l.sendRest(c) // sendRest sends the TLS alert with the reason
		l.close(c)
		return 0, false
	}
	return n, true
}

// received notes the outcome of a read. It returns false if c was closed. A read that did not fill
// its room has emptied the socket, except for the end of input.
func (l *loop) received(c *conn, n, room int, errno unix.Errno) bool {
	switch {
	case errno == unix.EAGAIN:
		c.readable = false
	case errno != 0:
		l.close(c)
		return false
	case n == 0:
		c.readable, c.eof = false, true
	default:
		c.readable = n == room || c.hup
		l.tally.received(n)
	}
	return true
}

// stash keeps what a parked client sends, up to the backlog. It reads nothing while the backlog is
// full. It returns false if c was closed.
func (l *loop) stash(c *conn) bool {
	lim := l.t.lim.Load()
	if c.in.len() >= lim.Backlog {
		return true
	}
	room := c.in.room(lim.Backlog, lim.Chunk)
	n, ok := l.receive(c, room)
	if !ok {
		return false
	}
	c.in.w += n
	if c.in.len() == 0 {
		c.in.drop()
	}
	return true
}

// feed calls the session's Feed with data and sends the replies. data is in the connection's own
// buffer if kept is set, and otherwise in the loop's. A client whose unconsumed input reaches
// MaxInput is closed after the replies.
func (l *loop) feed(c *conn, data []byte, kept bool) {
	if c.woken.Load() {
		c.woken.Store(false)
	}
	if len(data) > maxDeferredSize {
		l.sendDeferred() // the replies are sent first, because the following may take long
	}
	t := c.session.Feed(l.worker, data, l.out[:0])
	work := uint32(workPerTurn + len(data)/workPerBytes)
	l.tally.work += int64(work)
	if c.epoch != l.bal.epoch {
		c.epoch, c.work = l.bal.epoch, 0
	}
	c.work += work
	switch {
	case kept:
		c.in.consumed(t.Consumed)
	case t.Consumed < len(data):
		c.in.keep(data[t.Consumed:])
	}
	if c.next = t.Next; c.next == transport.Read && c.in.len() >= l.t.lim.Load().MaxInput {
		c.next = transport.Close
	}
	if len(t.Out) == 0 {
		return // references are always between bytes of the reply
	}
	ours := cap(t.Out) > maxOut // the slice is not the buffer of the loop
	if !ours {
		l.out = t.Out
	}
	switch {
	case t.Barrier != 0:
		l.hold(c, t.Out, t.Refs, t.Barrier)
	case len(t.Out) <= maxDeferredSize && len(data) <= maxDeferredSize && len(t.Refs) == 0 && t.Next != transport.Again:
		l.postpone(c, t.Out)
	default:
		l.sendDeferred()
		l.reply(c, t.Out, t.Refs, ours)
	}
}

// durable reports whether the held replies of c may be sent now: whether the log has reached their
// barrier. If so, it settles them. It calls Durable only after a Wake. The Wake may also be meant
// for the session, so the session gets it afterwards.
func (l *loop) durable(c *conn) bool {
	if c.out.Held == 0 || !c.woken.Swap(false) {
		return false // the replies at the end of the round come first
	}
	is := l.t.h.Durable(c.out.Barrier, c)
	if is == transport.Pending {
		return false
	}
	c.out.OnDurable(c.session, is)
	c.woken.Store(true)
	return true
}
