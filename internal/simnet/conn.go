package simnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one end of a connection. in is the stream of bytes to this end, and out the stream of
// bytes from it.
type Conn struct {
	n             *Network
	in, out       *stream
	local, remote *net.TCPAddr
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.wrap("read", err)
}

// Write implements [net.Conn]. It waits while the buffer is full. As with TCP, the first write
// after the peer has closed the connection is lost without an error. Later writes fail once the
// bytes of that write have arrived.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	if err == syscall.ECONNRESET { //nolint:errorlint // write returns this error unwrapped
		c.in.reset()
	}
	return n, c.wrap("write", err)
}

// wrap wraps err as package net does. It returns nil and io.EOF unchanged.
func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // read returns this error unwrapped
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Idle reports whether a Read would wait, because no byte has arrived and the connection is open.
func (c *Conn) Idle() bool {
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.arrival()
	return !s.closed && !s.broken && (!known || at.After(time.Now()))
}

// Close implements [net.Conn]. Bytes that were written before still arrive.
func (c *Conn) Close() error {
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	if c.in.close() {
		return c.wrap("close", net.ErrClosed)
	}
	c.out.end()
	return nil
}

// CloseWrite closes the direction to the peer: the peer reads io.EOF after all bytes that were written
// before. c can still read, but no longer write.
func (c *Conn) CloseWrite() error {
	c.out.end()
	return nil
}

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // SetReadDeadline cannot fail
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { c.in.setDeadline(&c.in.readBy, t); return nil }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { c.out.setDeadline(&c.out.writeBy, t); return nil }

// segment has the bytes of one write that are in transit.
type segment struct {
	bytes []byte
	at    time.Time // the time at which the bytes arrive
}

// stream is one direction of a connection, from a writer to a reader.
type stream struct {
	mu      sync.Mutex // mu guards the fields below
	changed sync.Cond  // signals, with mu, a change of the stream
	delay   func() time.Duration
	held    bool
	queue   []segment
	size    int       // number of bytes in queue, or of bytes that a closed reader does not take
	last    time.Time // the time at which the last segment arrives; no segment overtakes another
	ended   bool      // whether the writer has closed; the end arrives at the time last
	closed  bool      // whether the reader has closed
	refused time.Time // the time at which the writer learns that the reader has closed; zero until it has written more
	broken  bool      // whether the connection was reset
	left    int       // number of bytes until the connection is reset; negative means never
	readBy  time.Time
	writeBy time.Time
}

func newStream(s *state) *stream {
	st := &stream{delay: s.delay, held: s.held, left: -1}
	st.changed.L = &st.mu
	return st
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case expired(s.readBy):
			return 0, os.ErrDeadlineExceeded
		case s.broken && len(s.queue) == 0:
			return 0, syscall.ECONNRESET
		case len(b) == 0:
			return 0, nil
		}
		if at, known := s.arrival(); known && !at.After(time.Now()) {
			if len(s.queue) == 0 {
				return 0, io.EOF
			}
			return s.take(b), nil
		}
		at, _ := s.arrival()
		s.wait(s.readBy, at)
	}
}

// arrival returns the time at which the next bytes or the end arrive. known is false if nothing is
// in transit, or if the link is held.
func (s *stream) arrival() (at time.Time, known bool) {
	switch {
	case s.held:
	case len(s.queue) > 0:
		return s.queue[0].at, true
	case s.ended:
		return s.last, true
	}
	return time.Time{}, false
}

// take moves bytes that have arrived into b, and returns their number. The caller holds mu.
func (s *stream) take(b []byte) (n int) {
	now := time.Now()
	for n < len(b) && len(s.queue) > 0 && !s.queue[0].at.After(now) {
		first := &s.queue[0]
		k := copy(b[n:], first.bytes)
		n += k
		if first.bytes = first.bytes[k:]; len(first.bytes) == 0 {
			s.queue = s.queue[1:]
		}
	}
	s.size -= n
	s.changed.Broadcast()
	return n
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return n, net.ErrClosed
		case expired(s.writeBy):
			return n, os.ErrDeadlineExceeded
		case s.broken:
			return n, syscall.ECONNRESET
		case n == len(b):
			return n, nil
		case expired(s.refused):
			return n, syscall.EPIPE
		}
		if room := Buffer - s.size; room > 0 {
			n += s.put(b[n:min(len(b), n+room)])
			continue
		}
		s.wait(s.writeBy, s.refused)
	}
}

// put sends bytes of b and returns their number. If CutAfter has set a limit, put sends only the
// bytes up to it, and then breaks the connection. The caller holds mu.
func (s *stream) put(b []byte) int {
	cut := s.left >= 0 && len(b) >= s.left
	if cut {
		b = b[:s.left]
	}
	if s.left >= 0 {
		s.left -= len(b)
	}
	if len(b) > 0 {
		s.arrives()
		s.size += len(b)
		if s.closed {
			s.refuse()
		} else {
			s.queue = append(s.queue, segment{append([]byte(nil), b...), s.last})
		}
	}
	s.broken = s.broken || cut && len(b) == 0
	s.changed.Broadcast()
	return len(b)
}

// refuse makes the writer learn that the reader has closed, at the time when the bytes that it has
// written arrive. It does nothing if the reader has not closed, if there are no such bytes, or
// while the link is held. The caller holds mu.
func (s *stream) refuse() {
	if s.closed && s.size > 0 && !s.held && s.refused.IsZero() {
		s.refused = s.last
	}
}

// arrives sets s.last to the time at which bytes that are sent now arrive. The caller holds mu.
func (s *stream) arrives() {
	at := time.Now()
	if s.delay != nil {
		at = at.Add(s.delay())
	}
	if at.After(s.last) {
		s.last = at
	}
}

// wait waits for a change of the stream, or for the earliest of those times that are not zero. The
// caller holds mu.
func (s *stream) wait(times ...time.Time) {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		t := time.AfterFunc(time.Until(first), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
		defer t.Stop()
	}
	s.changed.Wait()
}

// expired reports whether the deadline t has passed. The zero time is no deadline.
func expired(t time.Time) bool { return !t.IsZero() && !t.After(time.Now()) }

// change calls f with mu held, and wakes the goroutines that wait for the stream.
func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
}

func (s *stream) setDeadline(which *time.Time, t time.Time) { s.change(func() { *which = t }) }

func (s *stream) setDelay(delay func() time.Duration) { s.change(func() { s.delay = delay }) }

func (s *stream) setHeld(on bool) { s.change(func() { s.held = on; s.refuse() }) }

func (s *stream) setLeft(n int) { s.change(func() { s.left = n }) }

// reset breaks the connection and drops the bytes in transit.
func (s *stream) reset() { s.change(func() { s.broken, s.queue, s.size = true, nil, 0 }) }

// end makes the reader see the end after all written bytes.
func (s *stream) end() {
	s.change(func() {
		if !s.ended {
			s.ended = true
			s.arrives()
		}
	})
}

// close closes the stream for the reader and drops unread bytes. The writer then fails, if there
// were unread bytes or when it writes more. close returns true if the stream was closed before.
func (s *stream) close() (was bool) {
	s.change(func() {
		was, s.closed, s.queue = s.closed, true, nil
		s.refuse()
	})
	return was
}
