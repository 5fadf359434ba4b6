package transport

import "golang.org/x/sys/unix"

// maxOut is how large the shared reply buffer may stay after a large reply.
const maxOut = 256 << 10

// run does for c what can be done now: sends what waits, feeds its session once, and
// sees whether it is over. Whoever changes what run looks at has to call it.
func (l *loop) run(c *epollConn) {
	if c.loop.Load() != l {
		c.post() // it has moved on, and the mail follows it
		return
	}
	if c.fd < 0 || c.slot == noSlot {
		return // gone, or not here yet: when it arrives it is run anyway
	}
	l.tend(c)
	l.count(c)
}

// count tells others what c keeps.
func (l *loop) count(c *epollConn) {
	if size, told := c.in.size(), c.input.Load(); size != told {
		l.tally.unread += int64(size - told)
		c.input.Store(size)
	}
	if n := int32(c.out.len()); n != c.output.Load() {
		c.output.Store(n)
	}
}

// tend is run for a connection that is here.
func (l *loop) tend(c *epollConn) {
	if c.aborted.Load() {
		l.close(c)
		return
	}
	if c.session == nil {
		l.discard(c)
		return
	}
	if c.out.barrier != 0 && !l.durable(c) {
		return
	}
	if c.out.len() > 0 && !l.flush(c) {
		return
	}
	// The backlog would allow more, but the kernel still has plenty to send: feeding
	// on would only have slow readers hold more memory.
	if c.out.len() == 0 && c.next != Close && !l.turn(c) {
		return
	}
	l.settle(c)
}

// turn feeds c if there is a reason to; false means that it was closed.
func (l *loop) turn(c *epollConn) bool {
	switch woken := c.woken.Load(); {
	case c.next == Again:
		l.feed(c, c.in.bytes(), true)
	case c.next == Read && c.readable && !l.draining:
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

// read returns the unconsumed input of c followed by n bytes that have arrived. That
// is in the connection's own buffer, or else nothing is in there and it is in the
// loop's. ok is false when c was closed.
func (l *loop) read(c *epollConn) (data []byte, n int, ok bool) {
	lim := l.e.lim.Load()
	had := c.in.len()
	var room []byte
	if had > smallRest {
		room = c.in.room(lim.MaxInput, lim.Chunk)
	} else {
		room = l.in[had : had+lim.Chunk]
	}
	n, errno := recv(c.fd, room)
	if !l.received(c, n, len(room), errno) {
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

// received notes the outcome of a read; false means that c was closed. A read that
// did not fill its room has emptied the socket, except for the end of input.
func (l *loop) received(c *epollConn, n, room int, errno unix.Errno) bool {
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
		l.tally.bytesIn += int64(n)
	}
	return true
}

// stash keeps what a parked client sends, up to the backlog; false: c was closed.
func (l *loop) stash(c *epollConn) bool {
	lim := l.e.lim.Load()
	if c.in.len() >= lim.Backlog {
		return true
	}
	room := c.in.room(lim.Backlog, lim.Chunk)
	n, errno := recv(c.fd, room)
	if !l.received(c, n, len(room), errno) {
		return false
	}
	c.in.w += n
	if c.in.len() == 0 {
		c.in.drop()
	}
	return true
}

// feed gives the session its turn with data, which is either the connection's own
// buffer (kept) or the loop's, and sends what comes of it.
func (l *loop) feed(c *epollConn, data []byte, kept bool) {
	if c.woken.Load() {
		c.woken.Store(false)
	}
	t := c.session.Feed(l.lane, data, l.out[:0])
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
	if c.next = t.Next; c.next == Read && c.in.len() >= l.e.lim.Load().MaxInput {
		c.next = Close
	}
	if len(t.Out) > 0 {
		if cap(t.Out) <= maxOut {
			l.out = t.Out
		}
		l.reply(c, t.Out, t.Barrier)
	}
}

// reply sends out, or keeps what cannot leave yet.
func (l *loop) reply(c *epollConn, out []byte, barrier uint64) {
	if barrier != 0 {
		l.hold(c, out, barrier)
		return
	}
	if c.out.len() == 0 {
		n, errno := send(c.fd, out)
		l.tally.bytesOut += int64(n)
		if n == len(out) {
			return
		}
		if errno != 0 && errno != unix.EAGAIN {
			l.close(c)
			return
		}
		out = out[n:]
	}
	c.out.add(out)
	l.tally.pending += int64(len(out))
	l.flush(c)
}

// durable lets held replies go once the log has reached their barrier. Only a Wake is
// a reason to ask. It may be meant for that or for the session, so the session gets
// it too, afterwards.
func (l *loop) durable(c *epollConn) bool {
	if c.out.held == 0 || !c.woken.Swap(false) {
		return false // the end of the round comes first
	}
	is := l.e.h.Durable(c.out.barrier, c)
	if is == Pending {
		return false
	}
	before := c.out.len()
	c.out.settle(c.session, is)
	l.tally.pending += int64(c.out.len() - before) // it may have changed them
	c.woken.Store(true)
	return true
}

// flush sends what may be sent until the kernel takes no more, and then has it tell
// when it does. false means that c was closed.
func (l *loop) flush(c *epollConn) bool {
	for len(c.out.ready()) > 0 {
		n, errno := send(c.fd, c.out.ready())
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 {
			l.close(c)
			return false
		}
		l.tally.bytesOut += int64(n)
		l.tally.pending -= int64(n)
		b := c.out.b
		if c.out.sent(n); c.out.b == nil {
			l.reclaim(b)
		}
		c.watch.sent = true
	}
	if len(c.out.ready()) == 0 {
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

// settle decides how c goes on after its turn.
func (l *loop) settle(c *epollConn) {
	if c.next == Wait && c.hup {
		c.eof = true // there may be more to read, but nobody to wait for
	}
	if c.out.len() > 0 || c.out.barrier != 0 {
		return // whatever makes room, or the barrier, or the sweep comes back
	}
	ending := (c.eof || l.draining) && (c.next == Read || c.next == Wait)
	switch {
	case ending && c.woken.Load() && !c.lastCall:
		c.lastCall = true
		l.enqueue(c)
	case ending || c.next == Close:
		l.hangUp(c)
	case c.next == Again, c.readable && (c.next == Read || c.in.len() < l.e.lim.Load().Backlog):
		l.enqueue(c)
	}
}
