package goroutine

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// These are the states of a connection's goroutine, which decide how interrupt reaches it.
const (
	phaseBusy        uint32 = iota // the goroutine will check the flags before it blocks
	phaseReading                   // the goroutine is blocked in Read
	phaseSleeping                  // the goroutine is blocked on cond
	phaseInterrupted               // a deadline is ending the Read in which the goroutine is blocked
)

// conn is one connection and its [transport.Peer]. Only its goroutine uses the fields, unless they
// are atomic or have a note.
type conn struct {
	t       *Transport
	nc      net.Conn
	session transport.Session
	in      input

	index int   // index in the list of connections; guarded by t.mu
	watch watch // what the reaper knows about the connection; guarded by t.mu

	phase     atomic.Uint32
	woken     atomic.Bool  // Wake was called and Feed was not called since then
	aborted   atomic.Bool  // the connection was aborted: reads and writes fail
	shrink    atomic.Bool  // whether the reaper has requested the release of the large buffer
	inputSize atomic.Int64 // size of the large buffer in bytes; 0 if there is none
	mu        sync.Mutex   // makes interrupt wait while a read or sleep ends
	cond      sync.Cond

	writes  atomic.Uint64 // odd while a write is in progress; grows with every chunk
	moved   traffic
	output  atomic.Int64 // number of bytes of replies that have not been sent
	counted atomic.Bool  // the value of [base.Output.Counted] for these bytes
	patient atomic.Bool  // the connection is exempt from the write timeout: see [transport.Patient]

	stopSeen  bool // the stop has been noticed and causes no further interrupt
	eof       bool // whether the peer has stopped sending
	finalFeed bool // a Wake that came with the end of input was followed by its Feed
	closing   bool // the session is closed and is not fed any more

	wakes  int       // number of Feeds because of a Wake since the last read
	polled time.Time // time of the last read by pollInput
}

// traffic counts bytes received and sent, and the calls for that. Only the goroutine of the
// connection adds to it.
type traffic struct{ bytesIn, reads, bytesOut, writes atomic.Int64 }

// received notes a call that received n bytes, sent a call that sent n bytes.
func (t *traffic) received(n int) { grow(&t.bytesIn, &t.reads, n) }
func (t *traffic) sent(n int)     { grow(&t.bytesOut, &t.writes, n) }

// grow adds n to bytes and 1 to calls. The additions need not be atomic, since only the goroutine
// of the connection writes.
func grow(bytes, calls *atomic.Int64, n int) {
	bytes.Store(bytes.Load() + int64(n))
	calls.Store(calls.Load() + 1)
}

func (t *traffic) addTo(s *transport.Stats) {
	s.BytesIn += t.bytesIn.Load()
	s.BytesOut += t.bytesOut.Load()
	s.Reads += t.reads.Load()
	s.Writes += t.writes.Load()
}

// errInterrupted is the error of a read that an interrupt ended.
var errInterrupted = errors.New("transport: nudged")

// writeChunk is the size of one Write with TLS, where only completed Writes show progress: the size
// of a TLS record. sendChunk is the size without TLS.
const (
	writeChunk = 16 << 10
	sendChunk  = 256 << 10
)

// maxGathered is the maximum number of pieces in one write.
const maxGathered = 64

func newGoConn(g *Transport, nc net.Conn) *conn {
	c := &conn{t: g, nc: nc}
	c.cond.L = &c.mu
	return c
}

// secure returns the TLS connection, nil without TLS.
func (c *conn) secure() *tls.Conn {
	over, _ := c.nc.(*tls.Conn)
	return over
}

// serve runs the connection until its end.
func (c *conn) serve() {
	defer c.t.unregister(c)
	next := transport.Read
	for c.ready(next) {
		var ok bool
		if next, ok = c.feed(); !ok {
			break
		}
	}
	// Call Closed before the peer can see the end of the connection. So a client that reconnects at
	// once is not refused because its old connection still counts.
	c.session.Closed()
	c.in.release()
	c.noteInput()
	c.hangUp(next == transport.Close)
}

// Wake implements [transport.Peer].
func (c *conn) Wake() {
	if !c.woken.Swap(true) {
		c.interrupt()
	}
}

// Abort implements [transport.Peer].
func (c *conn) Abort() {
	if c.aborted.Swap(true) {
		return
	}
	// The raw connection is closed, because Close of a TLS connection writes an alert, which may
	// take seconds.
	_ = rawConn(c.nc).Close() // fails only if the connection is closed already
	c.interrupt()
}

// RemoteAddr implements [transport.Peer]. The peer of a unix socket has no address of its own.
func (c *conn) RemoteAddr() net.Addr {
	if _, ok := rawConn(c.nc).(*net.UnixConn); ok {
		return c.nc.LocalAddr()
	}
	return c.nc.RemoteAddr()
}

// Descriptor implements [transport.Described].
func (c *conn) Descriptor() int {
	number := -1
	if file, ok := rawConn(c.nc).(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { number = int(fd) }) // fails only if the connection is closed
		}
	}
	return number
}

// LocalAddr implements [transport.Peer].
func (c *conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// BePatient implements [transport.Patient].
func (c *conn) BePatient() { c.patient.Store(true) }

// Held implements [transport.Peer].
func (c *conn) Held() (input, output int64) {
	return c.inputSize.Load(), c.output.Load()
}

// cut aborts the connection and discards the bytes that the kernel holds for the peer. Otherwise
// the kernel could hold megabytes for as long as the peer keeps its window shut.
func (c *conn) cut() {
	if tc, ok := rawConn(c.nc).(*net.TCPConn); ok {
		_ = tc.SetLinger(0) // fails only if the connection is closed
	}
	c.Abort()
}

// interrupt ends a read or a sleep of the goroutine, so that it checks the flags.
func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase.CompareAndSwap(phaseReading, phaseInterrupted):
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // fails only if the connection is closed
	case c.phase.Load() == phaseSleeping:
		c.cond.Signal()
	}
}

// urgent reports whether there is a reason not to block.
func (c *conn) urgent() bool {
	if c.aborted.Load() || (!c.stopSeen && c.t.stopping()) {
		return true
	}
	return !c.closing && (c.woken.Load() || c.shrink.Load())
}

// sleep blocks until urgent is true.
func (c *conn) sleep() {
	c.mu.Lock()
	c.phase.Store(phaseSleeping)
	for !c.urgent() {
		c.cond.Wait()
	}
	c.phase.Store(phaseBusy)
	c.mu.Unlock()
}

// read reads from the connection and appends the bytes to the input, which may grow to limit bytes.
// It may block.
func (c *conn) read(limit int) error {
	buf := c.in.room(limit, c.t.lim.Load().Chunk)
	n, err := c.readInto(buf)
	if n > 0 {
		c.in.added(n)
		c.moved.received(n)
	}
	c.noteInput()
	return err
}

// noteInput publishes the size of the input buffer, and of the buffer that crypto/tls reads into.
// The small input buffer of an idle connection does not count.
func (c *conn) noteInput() {
	size := tlsRoom(c.nc)
	if c.in.large() {
		size += int64(c.in.borrowed.Size(c.in.w))
	}
	if size != c.inputSize.Load() {
		c.inputSize.Store(size)
	}
}

// readInto reads into buf. An interrupt can end the read: err is then errInterrupted. It does not
// read if there is a reason not to block.
func (c *conn) readInto(buf []byte) (n int, err error) {
	c.phase.Store(phaseReading)
	if c.urgent() {
		err = errInterrupted
	} else {
		c.wakes = 0
		n, err = c.nc.Read(buf)
	}
	if !c.phase.CompareAndSwap(phaseReading, phaseBusy) {
		c.mu.Lock()
		_ = c.nc.SetReadDeadline(time.Time{}) // if this fails, the next read reports an error
		c.phase.Store(phaseBusy)
		c.mu.Unlock()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errInterrupted
	}
	return n, err
}

// ready blocks until there is something to feed. next is the result of the last Feed. ready returns
// false at the end of the connection.
func (c *conn) ready(next transport.Next) bool {
	for {
		if c.aborted.Load() || next == transport.Close {
			return false
		}
		if next == transport.Again {
			runtime.Gosched()
			return true
		}
		c.stopSeen = c.t.stopping()
		ending := (c.eof || c.stopSeen) && next != transport.Park
		if c.woken.Load() && (!ending || !c.finalFeed) {
			c.finalFeed = ending
			return next != transport.Read || c.pollInput()
		}
		if ending {
			return false
		}
		if c.shrink.Swap(false) {
			c.in.shrink()
			c.noteInput()
		}
		fed, ok := c.await(next)
		if fed || !ok {
			return ok
		}
	}
}

// pollInput reads from the client now and then while its session is woken all the time: see
// [transport.Pump]. Otherwise nothing would be read from the client until its session is not woken
// any more. pollInput returns false if the read failed. The end of input is no failure: it only
// sets c.eof.
func (c *conn) pollInput() bool {
	if c.wakes++; c.wakes < pollAfter {
		return true
	}
	now, limit := time.Now(), c.t.lim.Load().MaxInput
	if c.eof || c.in.len() >= limit || now.Sub(c.polled) < pollEvery {
		return true
	}
	c.polled = now
	_ = c.nc.SetReadDeadline(now.Add(pollTime)) // if this fails, the read reports an error
	n, err := c.nc.Read(c.in.room(limit, c.t.lim.Load().Chunk))
	_ = c.nc.SetReadDeadline(time.Time{}) // if this fails, the next read reports an error
	if n > 0 {
		c.in.added(n)
		c.moved.received(n)
	}
	c.noteInput()
	if errors.Is(err, io.EOF) {
		c.eof, err = true, nil
	}
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// When a session has been fed pollAfter times because of a Wake without a read in between, the
// connection is read from every pollEvery, for at most pollTime.
const (
	pollAfter = 16
	pollEvery = 100 * time.Millisecond
	pollTime  = time.Millisecond
)

// await reads once. If no more input may be kept or none will come, it sleeps instead. fed says
// that there is new input to feed. ok is false if the connection has failed, or if it has as much
// input as the limits allow and its session needs more.
func (c *conn) await(next transport.Next) (fed, ok bool) {
	limit := c.t.lim.Load().MaxInput
	if next != transport.Read {
		limit = c.t.lim.Load().Backlog
	}
	if c.eof || c.in.len() >= limit {
		if next == transport.Read {
			return false, false // the limits may now be below the size of the input
		}
		c.sleep()
		return false, true
	}
	had := c.in.len()
	err := c.read(limit)
	switch {
	case err == nil || errors.Is(err, errInterrupted):
	case errors.Is(err, io.EOF):
		c.eof = true
	default:
		return false, false
	}
	return next == transport.Read && c.in.len() > had, true
}

// feed calls the session's Feed and sends the replies. next says how to continue; it is Close if the
// session has left as much input as may be kept. ok is false if the connection cannot be used any
// more.
func (c *conn) feed() (next transport.Next, ok bool) {
	out := buffer.Get(buffer.MinSize)
	worker := c.t.workers.Borrow(c.t.h)
	c.woken.Store(false)
	t := c.session.Feed(worker, c.in.bytes(), out.B[:0])
	c.t.workers.GiveBack(worker)
	c.in.consumed(t.Consumed)
	c.noteInput()
	if t.Next == transport.Read && c.in.len() >= c.t.lim.Load().MaxInput {
		t.Next = transport.Close
	}
	ok = true
	if len(t.Out) > 0 {
		large := len(t.Out) > buffer.KeptSize
		o := base.Output{B: t.Out, Barrier: t.Barrier, Held: len(t.Out)}
		o.Refer(t.Refs, 0)
		if !large {
			out.B = t.Out
		}
		t.Out, t.Refs = nil, nil // write releases the memory of the parts that it has sent
		c.output.Store(int64(o.Kept()))
		c.counted.Store(o.Counted())
		if ok = t.Barrier == 0 || c.hold(&o); ok {
			ok = c.write(&o)
		}
		o.Drop()
		c.output.Store(0)
	}
	buffer.Put(out)
	return t.Next, ok
}

// hold waits until the log has reached the barrier of o. It returns false if the connection was
// aborted before. A Wake may be meant for hold or for the session, so the session gets it as well.
func (c *conn) hold(o *base.Output) bool {
	due := false
	for {
		due = c.woken.Swap(false) || due
		c.shrink.Store(false)
		c.stopSeen = c.t.stopping()
		if c.aborted.Load() {
			return false
		}
		if is := c.t.h.Durable(o.Barrier, c); is != transport.Pending {
			o.OnDurable(c.session, is)
			c.output.Store(int64(o.Kept())) // the session may have changed the replies
			break
		}
		c.sleep()
	}
	if due {
		c.woken.Store(true)
	}
	return true
}

// write sends all of o at the speed of the peer, which the reaper watches. It releases the memory
// of a large reply as it sends. It returns false after an error.
func (c *conn) write(o *base.Output) bool {
	o.Barrier, o.Held = 0, 0
	chunk := sendChunk
	if _, ok := c.nc.(syscall.Conn); !ok {
		chunk = writeChunk
	}
	c.writes.Add(1)
	defer c.writes.Add(1)
	for !o.HasRefs() {
		n, err := c.nc.Write(o.Next(chunk))
		if done := c.wrote(o, n); done || err != nil {
			return err == nil
		}
	}
	parts := make([][]byte, 0, maxGathered)
	for {
		parts, _ = o.Gather(parts[:0], chunk)
		n, err := c.writeParts(parts)
		if done := c.wrote(o, n); done || err != nil {
			return err == nil
		}
	}
}

// writeParts writes all parts, with TLS as one record.
func (c *conn) writeParts(parts [][]byte) (int, error) {
	if c.secure() == nil {
		gathered := net.Buffers(parts)
		n, err := gathered.WriteTo(c.nc)
		return int(n), err
	}
	joined := buffer.Get(writeChunk)
	defer buffer.Put(joined)
	b := joined.B[:0]
	for _, p := range parts {
		b = append(b, p...)
	}
	return c.nc.Write(b)
}

// wrote notes that n bytes of o have been sent, and reports whether o is empty.
func (c *conn) wrote(o *base.Output, n int) (done bool) {
	if n > 0 {
		c.moved.sent(n)
	}
	o.Sent(n)
	c.output.Store(int64(o.Kept()))
	if o.Empty() {
		return true
	}
	c.writes.Add(2)
	return false
}
