package transport

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// Goroutine is the portable transport: one goroutine per connection, blocking
// reads and writes on any net.Conn. It serves TLS and the systems that have no
// epoll.
type Goroutine struct {
	h   Handler
	log *slog.Logger

	lim   atomic.Pointer[Limits]
	lanes lanes
	stop  chan struct{} // closed when Shutdown begins
	idle  chan struct{} // closed when the last connection is gone
	fin   chan struct{} // closed when the reaper has ended too

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

// NewGoroutine returns a transport that feeds sessions of h. Nothing runs before Serve.
func NewGoroutine(h Handler, lim Limits, log *slog.Logger) *Goroutine {
	g := &Goroutine{
		h:         h,
		log:       log,
		stop:      make(chan struct{}),
		idle:      make(chan struct{}),
		fin:       make(chan struct{}),
		listeners: make(map[net.Listener]struct{}),
	}
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
	keepAlive(nc, g.lim.Load().KeepAlive)
	session, farewell := g.h.Open(c)
	if session == nil {
		go c.refuse(farewell)
		return
	}
	c.session = session
	go c.serve()
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
	g.gone.BytesIn += c.bytesIn.Load()
	g.gone.BytesOut += c.sent.Load()
	g.mu.Unlock()
	g.wg.Done()
}

// SetLimits implements [Transport].
func (g *Goroutine) SetLimits(lim Limits) { g.lim.Store(lim.sane()) }

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
		s.BytesIn += c.bytesIn.Load()
		s.BytesOut += c.sent.Load()
		s.Pending += output
		s.Unread += input
	}
	return s
}

// Shutdown implements [Transport].
func (g *Goroutine) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	if !g.stopped {
		g.stopped = true
		close(g.stop)
		for l := range g.listeners {
			_ = l.Close() // Accept returns the error, if there is one to see
		}
		go g.awaitEnd()
	}
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
	g.wg.Wait()
	close(g.idle)
	g.reaping.Wait()
	close(g.fin)
}

func (g *Goroutine) stopping() bool {
	select {
	case <-g.stop:
		return true
	default:
		return false
	}
}
