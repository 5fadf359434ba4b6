// Package goroutine is the portable [transport.Transport]: a goroutine for each connection.
// It reads and writes any net.Conn with blocking calls. [New] makes a [Transport].
package goroutine

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// Transport is the portable transport: one goroutine per connection, with blocking reads and writes
// on any net.Conn. It is the default on systems other than Linux.
type Transport struct {
	h   transport.Handler
	log *slog.Logger
	now func() time.Time // the clock for the write timeout

	lim        atomic.Pointer[transport.Limits]
	workers    base.Workers
	handshakes *base.Handshakes
	stop       chan struct{} // closed when Shutdown begins
	idle       chan struct{} // closed when the last connection is gone
	fin        chan struct{} // closed when the reaper has ended too

	wg         sync.WaitGroup // counts connections, refusals and calls of Serve
	reaping    sync.WaitGroup
	lingering  atomic.Int64
	accepted   atomic.Int64
	acceptErrs atomic.Int64
	slowClosed atomic.Int64

	mu        sync.Mutex // mu guards the fields below
	stopped   bool
	reaped    bool // whether the reaper has been started
	listeners map[net.Listener]struct{}
	conns     []*conn
	gone      transport.Stats // sums of the counters of closed connections
}

// New returns a transport that feeds sessions of h. It starts nothing before Serve. now is the
// clock for the write timeout.
func New(h transport.Handler, lim transport.Limits, log *slog.Logger, now func() time.Time) *Transport {
	t := &Transport{
		h:         h,
		log:       log,
		now:       now,
		stop:      make(chan struct{}),
		idle:      make(chan struct{}),
		fin:       make(chan struct{}),
		listeners: make(map[net.Listener]struct{}),
	}
	t.handshakes = base.NewHandshakes(0, &t.lim)
	t.lim.Store(base.WithDefaults(lim))
	return t
}

// register adds c to the connections that Shutdown waits for. It returns false if Shutdown has
// begun.
func (t *Transport) register(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	c.index = len(t.conns)
	t.conns = append(t.conns, c)
	t.wg.Add(1)
	return true
}

// unregister removes a connection. Nothing else happens to the connection after it.
func (t *Transport) unregister(c *conn) {
	t.mu.Lock()
	last := len(t.conns) - 1
	t.conns[c.index] = t.conns[last]
	t.conns[c.index].index = c.index
	t.conns[last] = nil
	t.conns = t.conns[:last]
	c.moved.addTo(&t.gone)
	t.mu.Unlock()
	t.wg.Done()
}

func (t *Transport) stopping() bool {
	select {
	case <-t.stop:
		return true
	default:
		return false
	}
}

// Serve implements [transport.Transport].
func (t *Transport) Serve(l net.Listener) error {
	if !t.begin(l) {
		_ = l.Close() // Serve owns l, even after Shutdown
		return transport.ErrClosed
	}
	defer t.end(l)
	return base.AcceptLoop(func() error {
		nc, err := l.Accept()
		if err == nil {
			t.admit(nc)
		}
		return err
	}, t.stop, &t.acceptErrs, t.log)
}

// begin registers l, and starts the reaper with the first listener. It returns false if Shutdown
// has begun.
func (t *Transport) begin(l net.Listener) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	if !t.reaped {
		t.reaped = true
		t.reaping.Go(t.reap)
	}
	t.listeners[l] = struct{}{}
	t.wg.Add(1)
	return true
}

func (t *Transport) end(l net.Listener) {
	_ = l.Close() // usually l is closed already
	t.mu.Lock()
	delete(t.listeners, l)
	t.mu.Unlock()
	t.wg.Done()
}

// admit opens a session for nc and starts its goroutine. Another goroutine writes refusals, so that
// no client can delay the next accept. After Shutdown, admit closes nc.
func (t *Transport) admit(nc net.Conn) {
	c := newGoConn(t, nc)
	if !t.register(c) {
		_ = nc.Close() // Shutdown has come first
		return
	}
	t.accepted.Add(1)
	keepAlive(rawConn(nc), t.lim.Load().KeepAlive)
	session, rejection := t.h.Open(c)
	if session == nil {
		go c.refuse(rejection)
		return
	}
	c.session = session
	if c.secure() != nil {
		t.handshakes.Begin(&handshake{conn: c, next: c.serve})
		return
	}
	go c.serve()
}

// SetLimits implements [transport.Transport].
func (t *Transport) SetLimits(lim transport.Limits) { t.lim.Store(base.WithDefaults(lim)) }

// Retire implements [transport.Transport].
func (t *Transport) Retire(l net.Listener) { _ = l.Close() } // fails if the listener is closed already

// Stats implements [transport.Transport].
func (t *Transport) Stats() transport.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.gone
	s.Connections = int64(len(t.conns))
	s.Accepted = t.accepted.Load()
	s.AcceptErrs = t.acceptErrs.Load()
	s.SlowClosed = t.slowClosed.Load()
	for _, c := range t.conns {
		input, output := c.Held()
		c.moved.addTo(&s)
		s.Pending += output
		s.Unread += input
	}
	return s
}

// Shutdown implements [transport.Transport].
func (t *Transport) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	first := !t.stopped
	if first {
		t.stopped = true
		close(t.stop)
		for l := range t.listeners {
			_ = l.Close() // Accept returns the error, if there is one
		}
	}
	t.mu.Unlock()
	t.handshakes.Stop() // mu is not locked, because connections that wait for a handshake are unregistered
	if first {
		go t.awaitEnd()
	}
	t.mu.Lock()
	conns := append([]*conn(nil), t.conns...)
	t.mu.Unlock()
	for _, c := range conns {
		c.interrupt()
	}
	select {
	case <-t.fin:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	conns = append(conns[:0], t.conns...)
	t.mu.Unlock()
	for _, c := range conns {
		c.Abort()
	}
	<-t.fin
	return ctx.Err()
}

// awaitEnd closes fin when everything has ended. The reaper ends last: until then it closes peers
// that do not read while other connections finish.
func (t *Transport) awaitEnd() {
	t.handshakes.Wait()
	t.wg.Wait()
	close(t.idle)
	t.reaping.Wait()
	close(t.fin)
}

// keepAlive sets the TCP keep-alive as Redis does: the first probe after period, and the next two
// each a third of period, and at least a second, later. A period of 0 turns keep-alive off.
// keepAlive does nothing for a connection that is not TCP.
func keepAlive(nc net.Conn, period time.Duration) {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	// A socket that is closed already refuses the option, and its first read reports that.
	_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable:   period > 0,
		Idle:     period,
		Interval: max(period/3, time.Second),
		Count:    3,
	})
}
