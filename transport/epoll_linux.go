package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const haveEpoll = true

// Epoll is the transport of Linux: a few event loops, each with a thread of its
// own, one buffer to read into and one to reply from, shared by all its
// connections. An idle connection costs its [epollConn] and nothing else.
type Epoll struct {
	h     Handler
	log   *slog.Logger
	now   func() time.Time // the clock by which peers are slow
	lim   atomic.Pointer[Limits]
	loops []*loop
	place *placement

	handshakes *handshakes

	stop      chan struct{} // closed when Shutdown begins
	fin       chan struct{} // closed when the last loop has ended
	draining  atomic.Bool   // nobody accepts any more: loops finish and end
	cut       atomic.Bool   // loops drop what they have
	accepting sync.WaitGroup
	running   sync.WaitGroup

	accepted   atomic.Int64
	acceptErrs atomic.Int64
	lingering  atomic.Int64

	born time.Time
	busy busyLoops

	mu        sync.Mutex // guards what follows
	stopped   bool
	acceptors map[*acceptor]struct{}
}

// NewEpoll starts loops event loops that feed sessions of h. It fails when the
// kernel refuses a descriptor. Best served with GOMAXPROCS one above loops.
func NewEpoll(h Handler, lim Limits, loops int, log *slog.Logger) (*Epoll, error) {
	return newEpollAt(h, lim, loops, log, time.Now)
}

// newEpollAt is NewEpoll with the clock by which peers are slow.
func newEpollAt(h Handler, lim Limits, loops int, log *slog.Logger, now func() time.Time) (*Epoll, error) {
	e := &Epoll{
		born:      time.Now(),
		h:         h,
		log:       log,
		now:       now,
		stop:      make(chan struct{}),
		fin:       make(chan struct{}),
		acceptors: make(map[*acceptor]struct{}),
	}
	e.handshakes = newHandshakes(loops, &e.lim)
	e.lim.Store(lim.sane())
	for range max(loops, 1) {
		l, err := newLoop(e)
		if err != nil {
			for _, l := range e.loops {
				l.release()
			}
			return nil, fmt.Errorf("making an event loop: %w", err)
		}
		e.loops = append(e.loops, l)
	}
	e.place = newPlacement(len(e.loops))
	for _, l := range e.loops {
		l.bal.seen = make([]int64, len(e.loops))
		e.running.Go(l.loop)
	}
	return e, nil
}

func newEpoll(h Handler, lim Limits, loops int, log *slog.Logger) (Transport, error) {
	return NewEpoll(h, lim, loops, log)
}

// Serve implements [Transport], for TCP, with TLS or without, and unix sockets.
func (e *Epoll) Serve(l net.Listener) error {
	a, err := newAcceptor(e, l)
	if err != nil {
		return err
	}
	defer a.close()
	if !e.begin(a) {
		return ErrClosed
	}
	defer e.end(a)
	if a.retired() {
		return net.ErrClosed
	}
	return acceptLoop(a.accept, e.stop, &e.acceptErrs, e.log)
}

func (e *Epoll) begin(a *acceptor) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return false
	}
	e.acceptors[a] = struct{}{}
	e.accepting.Add(1)
	return true
}

func (e *Epoll) end(a *acceptor) {
	e.mu.Lock()
	delete(e.acceptors, a)
	e.mu.Unlock()
	e.accepting.Done()
}

// Retire implements [Transport]. A listener whose acceptor is only about to begin is closed, and
// its acceptor finds that.
func (e *Epoll) Retire(l net.Listener) {
	_ = l.Close() // closed already, if it has failed
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := range e.acceptors {
		if a.l == l {
			a.close()
		}
	}
}

// SetLimits implements [Transport].
func (e *Epoll) SetLimits(lim Limits) {
	e.lim.Store(lim.sane())
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := range e.acceptors {
		if err := a.setOptions(lim.KeepAlive); err != nil && !errors.Is(err, os.ErrClosed) {
			e.log.Warn("keep-alive cannot be set", "error", err)
		}
	}
	for _, l := range e.loops {
		l.knock() // a loop that watches a slow peer sleeps by the old limit
	}
}

// Stats implements [Transport].
func (e *Epoll) Stats() Stats {
	s := Stats{Connections: e.handshakes.count(), Accepted: e.accepted.Load(), AcceptErrs: e.acceptErrs.Load()}
	for _, l := range e.loops {
		s.Connections += l.conns.Load()
		s.BytesIn += l.told.bytesIn.Load()
		s.BytesOut += l.told.bytesOut.Load()
		s.Reads += l.told.reads.Load()
		s.Writes += l.told.writes.Load()
		s.Pending += l.told.pending.Load()
		s.Unread += l.told.unread.Load()
		s.SlowClosed += l.told.slowClosed.Load()
	}
	return s
}

// Shutdown implements [Transport].
func (e *Epoll) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	if !e.stopped {
		e.stopped = true
		close(e.stop)
		for a := range e.acceptors {
			a.close()
		}
		go e.drain()
	}
	e.mu.Unlock()
	select {
	case <-e.fin:
		return nil
	case <-ctx.Done():
	}
	e.cut.Store(true)
	for _, l := range e.loops {
		l.knock()
	}
	<-e.fin
	return ctx.Err()
}

// drain has the loops finish once nothing can be accepted any more.
func (e *Epoll) drain() {
	e.handshakes.stop()
	e.accepting.Wait()
	e.handshakes.wait()
	e.draining.Store(true)
	for _, l := range e.loops {
		l.knock()
	}
	e.running.Wait()
	for _, l := range e.loops {
		l.release()
	}
	close(e.fin)
}
