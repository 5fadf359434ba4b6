package transport

import (
	"context"
	"log/slog"
	"net"
	"time"
)

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
