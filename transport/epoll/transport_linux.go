package epoll

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

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// Transport is the transport of Linux: a few event loops, each with a thread of its own. All
// connections of a loop share one read buffer and one reply buffer. An idle connection costs its
// [conn] and nothing else.
type Transport struct {
	h         transport.Handler
	log       *slog.Logger
	now       func() time.Time // the clock for the write timeout
	lim       atomic.Pointer[transport.Limits]
	loops     []*loop
	placement *placement

	handshakes *base.Handshakes

	stop      chan struct{} // closed when Shutdown begins
	fin       chan struct{} // closed when the last loop has ended
	draining  atomic.Bool   // no more connections are accepted: loops finish their work and end
	cut       atomic.Bool   // loops close all connections without finishing their work
	accepting sync.WaitGroup
	running   sync.WaitGroup

	accepted   atomic.Int64
	acceptErrs atomic.Int64
	lingering  atomic.Int64

	born time.Time
	busy busyLoops

	mu        sync.Mutex // mu guards the fields below
	stopped   bool
	acceptors map[*acceptor]struct{}
}

// New starts the given number of event loops, but at least one, which serve connections with
// sessions of h. It fails if the kernel provides no descriptor. Each loop occupies a thread.
// GOMAXPROCS should be one more than loops. now is the clock for the write timeout.
func New(h transport.Handler, lim transport.Limits, loops int, log *slog.Logger, now func() time.Time) (*Transport, error) {
	t := &Transport{
		born:      time.Now(),
		h:         h,
		log:       log,
		now:       now,
		stop:      make(chan struct{}),
		fin:       make(chan struct{}),
		acceptors: make(map[*acceptor]struct{}),
	}
	t.handshakes = base.NewHandshakes(loops, &t.lim)
	t.lim.Store(base.WithDefaults(lim))
	for range max(loops, 1) {
		l, err := newLoop(t)
		if err != nil {
			for _, l := range t.loops {
				l.release()
			}
			return nil, fmt.Errorf("making an event loop: %w", err)
		}
		t.loops = append(t.loops, l)
	}
	t.placement = newPlacement(len(t.loops))
	for _, l := range t.loops {
		l.bal.seen = make([]int64, len(t.loops))
		t.running.Go(l.loop)
	}
	return t, nil
}

// Serve implements [transport.Transport] for TCP, with or without TLS, and for unix sockets.
func (t *Transport) Serve(l net.Listener) error {
	a, err := newAcceptor(t, l)
	if err != nil {
		return err
	}
	defer a.close()
	if !t.begin(a) {
		return transport.ErrClosed
	}
	defer t.end(a)
	if a.retired() {
		return net.ErrClosed
	}
	return base.AcceptLoop(a.accept, t.stop, &t.acceptErrs, t.log)
}

func (t *Transport) begin(a *acceptor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	t.acceptors[a] = struct{}{}
	t.accepting.Add(1)
	return true
}

func (t *Transport) end(a *acceptor) {
	t.mu.Lock()
	delete(t.acceptors, a)
	t.mu.Unlock()
	t.accepting.Done()
}

// Retire implements [transport.Transport]. If the acceptor of l has not begun yet, it finds that l
// is closed.
func (t *Transport) Retire(l net.Listener) {
	_ = l.Close() // the listener is closed already if it has failed
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.acceptors {
		if a.l == l {
			a.close()
		}
	}
}

// SetLimits implements [transport.Transport].
func (t *Transport) SetLimits(lim transport.Limits) {
	t.lim.Store(base.WithDefaults(lim))
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.acceptors {
		if err := a.setOptions(lim.KeepAlive); err != nil && !errors.Is(err, os.ErrClosed) {
			t.log.Warn("keep-alive cannot be set", "error", err)
		}
	}
	for _, l := range t.loops {
		l.wake() // a loop that watches a slow peer still sleeps by the old limit
	}
}

// Stats implements [transport.Transport].
func (t *Transport) Stats() transport.Stats {
	s := transport.Stats{Connections: t.handshakes.Count(), Accepted: t.accepted.Load(), AcceptErrs: t.acceptErrs.Load()}
	for _, l := range t.loops {
		s.Connections += l.conns.Load()
		s.BytesIn += l.published.bytesIn.Load()
		s.BytesOut += l.published.bytesOut.Load()
		s.Reads += l.published.reads.Load()
		s.Writes += l.published.writes.Load()
		s.Pending += l.published.pending.Load()
		s.Unread += l.published.unread.Load()
		s.SlowClosed += l.published.slowClosed.Load()
	}
	return s
}

// Shutdown implements [transport.Transport].
func (t *Transport) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	if !t.stopped {
		t.stopped = true
		close(t.stop)
		for a := range t.acceptors {
			a.close()
		}
		go t.drain()
	}
	t.mu.Unlock()
	select {
	case <-t.fin:
		return nil
	case <-ctx.Done():
	}
	t.cut.Store(true)
	for _, l := range t.loops {
		l.wake()
	}
	<-t.fin
	return ctx.Err()
}

// drain makes the loops end once no connection can be accepted any more, waits for their end, and
// closes t.fin.
func (t *Transport) drain() {
	t.handshakes.Stop()
	t.accepting.Wait()
	t.handshakes.Wait()
	t.draining.Store(true)
	for _, l := range t.loops {
		l.wake()
	}
	t.running.Wait()
	for _, l := range t.loops {
		l.release()
	}
	close(t.fin)
}
