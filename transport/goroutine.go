package transport

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// What the goroutine of a connection is doing, as far as a nudge is concerned.
const (
	phaseBusy     uint32 = iota // it will look at the flags before it blocks
	phaseReading                // blocked in Read
	phaseSleeping               // blocked on cond
	phaseNudged                 // being pulled out of Read
)

// Goroutine is the portable transport: one goroutine per connection, blocking
// reads and writes on any net.Conn. It serves TLS and the systems that have no
// epoll.
type Goroutine struct {
	h   Handler
	log *slog.Logger
	now func() time.Time // the clock by which peers are slow

	lim        atomic.Pointer[Limits]
	workers    workers
	handshakes *handshakes
	stop       chan struct{} // closed when Shutdown begins
	idle       chan struct{} // closed when the last connection is gone
	fin        chan struct{} // closed when the reaper has ended too

	wg         sync.WaitGroup // connections, refusals and Serve calls
	reaping    sync.WaitGroup
	lingering  atomic.Int64
	accepted   atomic.Int64
	acceptErrs atomic.Int64
	slowClosed atomic.Int64

	mu        sync.Mutex // guards what follows
	stopped   bool
	reaped    bool // the reaper has been started
	listeners map[net.Listener]struct{}
	conns     []*goConn
	gone      Stats // counters of connections that are no more
}

// goConn is one connection and its [Peer]. Fields without a note belong to its goroutine.
type goConn struct {
	g       *Goroutine
	nc      net.Conn
	session Session
	in      input

	index int   // guarded by g.mu
	watch watch // guarded by g.mu

	phase  atomic.Uint32
	woken  atomic.Bool  // a Wake that no Feed has followed yet
	dead   atomic.Bool  // aborted: whatever is under way fails
	shrink atomic.Bool  // the reaper wants the large buffer back
	lent   atomic.Int64 // size of the large buffer, 0 without one
	mu     sync.Mutex   // serialises nudges with their end
	cond   sync.Cond

	writes  atomic.Uint64 // odd while a write is under way; grows with every chunk
	moved   traffic
	output  atomic.Int64 // what replies take that have not left
	counted atomic.Bool  // these are [reply.counted]
	patient atomic.Bool  // it may take nothing for as long as it likes: see [Patient]

	stopSeen bool // the stop has been taken into account: it does not interrupt again
	eof      bool // the peer has stopped sending
	lastCall bool // the Feed for a Wake that came with the end has been had
	closing  bool // the session is gone: nobody is to be fed

	wakes   int       // Feeds for a Wake since it was last read from
	glanced time.Time // when glance last did so
}

// traffic is what a connection has moved, in bytes, and in how many calls. Its goroutine alone
// adds to it.
type traffic struct{ bytesIn, reads, bytesOut, writes atomic.Int64 }

// received notes a call that received n bytes, and sent one that sent them.
func (t *traffic) received(n int) { grow(&t.bytesIn, &t.reads, n) }
func (t *traffic) sent(n int)     { grow(&t.bytesOut, &t.writes, n) }

// grow needs no locked addition, since nobody else writes.
func grow(bytes, calls *atomic.Int64, n int) {
	bytes.Store(bytes.Load() + int64(n))
	calls.Store(calls.Load() + 1)
}

// addTo adds it to a sum.
func (t *traffic) addTo(s *Stats) {
	s.BytesIn += t.bytesIn.Load()
	s.BytesOut += t.bytesOut.Load()
	s.Reads += t.reads.Load()
	s.Writes += t.writes.Load()
}

// watch is what the reaper remembers of a connection between two looks.
type watch struct {
	writes uint64
	unsent int
	stuck  time.Duration
	in     int64
	idle   time.Duration
}

// register adds c to the connections that Shutdown waits for.
func (g *Goroutine) register(c *goConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	c.index = len(g.conns)
	g.conns = append(g.conns, c)
	g.wg.Add(1)
	return true
}

// unregister is the last thing that happens to a connection.
func (g *Goroutine) unregister(c *goConn) {
	g.mu.Lock()
	last := len(g.conns) - 1
	g.conns[c.index] = g.conns[last]
	g.conns[c.index].index = c.index
	g.conns[last] = nil
	g.conns = g.conns[:last]
	c.moved.addTo(&g.gone)
	g.mu.Unlock()
	g.wg.Done()
}

func (g *Goroutine) stopping() bool {
	select {
	case <-g.stop:
		return true
	default:
		return false
	}
}

// secure returns the connection as one with TLS, nil if it has none.
func (c *goConn) secure() *tls.Conn {
	over, _ := c.nc.(*tls.Conn)
	return over
}

// NewGoroutine returns a transport that feeds sessions of h. Nothing runs before Serve.
func NewGoroutine(h Handler, lim Limits, log *slog.Logger) *Goroutine {
	return newGoroutine(h, lim, log, time.Now)
}

// newGoroutine is NewGoroutine with the clock by which peers are slow.
func newGoroutine(h Handler, lim Limits, log *slog.Logger, now func() time.Time) *Goroutine {
	g := &Goroutine{
		h:         h,
		log:       log,
		now:       now,
		stop:      make(chan struct{}),
		idle:      make(chan struct{}),
		fin:       make(chan struct{}),
		listeners: make(map[net.Listener]struct{}),
	}
	g.handshakes = newHandshakes(0, &g.lim)
	g.lim.Store(lim.sane())
	return g
}

// Serve implements [Transport].
func (g *Goroutine) Serve(l net.Listener) error {
	if !g.begin(l) {
		_ = l.Close() // whoever serves after Shutdown only wants to be rid of it
		return ErrClosed
	}
	defer g.end(l)
	return acceptLoop(func() error {
		nc, err := l.Accept()
		if err == nil {
			g.admit(nc)
		}
		return err
	}, g.stop, &g.acceptErrs, g.log)
}

// begin registers l, and starts the reaper with the first listener.
func (g *Goroutine) begin(l net.Listener) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	if !g.reaped {
		g.reaped = true
		g.reaping.Go(g.reap)
	}
	g.listeners[l] = struct{}{}
	g.wg.Add(1)
	return true
}

func (g *Goroutine) end(l net.Listener) {
	_ = l.Close() // closed already, most of the time
	g.mu.Lock()
	delete(g.listeners, l)
	g.mu.Unlock()
	g.wg.Done()
}

// admit opens a session for nc and gives it its goroutine. Refusals are written by
// a goroutine of their own: nothing a client does may hold up the next accept.
func (g *Goroutine) admit(nc net.Conn) {
	c := newGoConn(g, nc)
	if !g.register(c) {
		_ = nc.Close() // Shutdown was faster
		return
	}
	g.accepted.Add(1)
	keepAlive(rawConn(nc), g.lim.Load().KeepAlive)
	session, rejection := g.h.Open(c)
	if session == nil {
		go c.refuse(rejection)
		return
	}
	c.session = session
	if c.secure() != nil {
		g.handshakes.begin(&greeting{goConn: c, next: c.serve})
		return
	}
	go c.serve()
}

// serve is the life of a connection.
func (c *goConn) serve() {
	defer c.g.unregister(c)
	next := Read
	for c.ready(next) {
		var ok bool
		if next, ok = c.feed(); !ok {
			break
		}
	}
	// Closed comes before the peer can see the end, so that a client that connects
	// again finds its place free.
	c.session.Closed()
	c.in.release()
	c.noteInput()
	c.hangUp(next == Close)
}

// SetLimits implements [Transport].
func (g *Goroutine) SetLimits(lim Limits) { g.lim.Store(lim.sane()) }

// Retire implements [Transport].
func (g *Goroutine) Retire(l net.Listener) { _ = l.Close() } // closed already, if it has failed

// Stats implements [Transport].
func (g *Goroutine) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.gone
	s.Connections = int64(len(g.conns))
	s.Accepted = g.accepted.Load()
	s.AcceptErrs = g.acceptErrs.Load()
	s.SlowClosed = g.slowClosed.Load()
	for _, c := range g.conns {
		input, output := c.Held()
		c.moved.addTo(&s)
		s.Pending += output
		s.Unread += input
	}
	return s
}

// Shutdown implements [Transport].
func (g *Goroutine) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	first := !g.stopped
	if first {
		g.stopped = true
		close(g.stop)
		for l := range g.listeners {
			_ = l.Close() // Accept returns the error, if there is one to see
		}
	}
	g.mu.Unlock()
	g.handshakes.stop() // without mu: connections that wait for a handshake are unregistered
	if first {
		go g.awaitEnd()
	}
	g.mu.Lock()
	conns := append([]*goConn(nil), g.conns...)
	g.mu.Unlock()
	for _, c := range conns {
		c.nudge()
	}
	select {
	case <-g.fin:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	conns = append(conns[:0], g.conns...)
	g.mu.Unlock()
	for _, c := range conns {
		c.Abort()
	}
	<-g.fin
	return ctx.Err()
}

// awaitEnd closes fin when everything has ended, the reaper last: it still has to
// cut peers that do not read while the others finish.
func (g *Goroutine) awaitEnd() {
	g.handshakes.wait()
	g.wg.Wait()
	close(g.idle)
	g.reaping.Wait()
	close(g.fin)
}
