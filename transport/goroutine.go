package transport

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
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

// keepAlive sets the keep-alive of a TCP connection the way Redis does: the first
// probe after period, the next two a third of it apart.
func keepAlive(nc net.Conn, period time.Duration) {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	// A socket that is already gone refuses the option; its first read will say so.
	_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable:   period > 0,
		Idle:     period,
		Interval: max(period/3, time.Second),
		Count:    3,
	})
}
