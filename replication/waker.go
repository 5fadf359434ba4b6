package replication

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/transport"
)

const (
	// linger is for how long new bytes of the stream wait for more, before a replica is woken
	// that has been sent everything. To wake it costs more than to send a record. A busy event
	// loop gathers the bytes that arrive meanwhile at no cost.
	linger = time.Millisecond
	// lingerBytes ends the wait early: to send so many bytes costs more than to wake.
	lingerBytes = 64 << 10
)

// waker wakes the replicas that have been sent everything when the stream continues.
type waker struct {
	after func(time.Duration, func()) clock.Timer

	asleep atomic.Int32 // the length of sleepers
	armed  atomic.Bool  // a timer runs

	mu       sync.Mutex // guards the fields below
	sleepers []*sleeper
	timer    clock.Timer
	closed   bool
}

// sleeper is a replica from the waker's point of view.
type sleeper struct {
	peer    transport.Peer
	backlog *Backlog
	slept   uint64 // offset up to which it had been sent everything; guarded by the mutex of the waker
}

// waits returns how many bytes it has not been sent. The caller must hold the mutex of the waker.
func (s *sleeper) waits() uint64 { return s.backlog.End() - s.slept }

// sleep registers s to be woken when the stream continues behind at. The caller checks the stream
// again afterwards: see [waker.written].
func (w *waker) sleep(s *sleeper, at uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.slept = at
	if !w.closed && !slices.Contains(w.sleepers, s) {
		w.sleepers = append(w.sleepers, s)
		w.asleep.Store(int32(len(w.sleepers)))
	}
}

// written is called after a write to the stream, and by a sleeper that sees that the stream was
// written to before it slept. It wakes the sleepers soon, or at once if urgent is set or many
// bytes wait.
func (w *waker) written(urgent bool) {
	if w.asleep.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := uint64(0)
	for _, s := range w.sleepers {
		longest = max(longest, s.waits())
	}
	switch {
	case longest == 0:
	case urgent || longest >= lingerBytes:
		w.wake()
	case !w.armed.Load():
		w.armed.Store(true)
		w.timer = w.after(linger, w.lingerOver)
	}
}

// wakeNow ends a wait for more bytes, because a client has begun to wait for replicas.
func (w *waker) wakeNow() {
	if !w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake()
}

// lingerOver ends a wait for more bytes that has taken its full time. If there was something to
// send, more is likely to follow, so it starts the next wait. A timer that is made here wakes no
// thread. One that an event loop makes while the other loops sleep would.
func (w *waker) lingerOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake() && !w.closed {
		w.timer = w.after(linger, w.lingerOver)
		return
	}
	w.armed.Store(false)
}

// wake wakes the sleepers that have bytes to send, and reports whether there are any. The caller
// must hold mu. It does not stop a running timer: the next wait is only shorter for it, and at
// most one timer fires per linger.
func (w *waker) wake() (some bool) {
	rest := w.sleepers[:0]
	for _, s := range w.sleepers {
		if s.waits() > 0 {
			s.peer.Wake()
			some = true
		} else {
			rest = append(rest, s)
		}
	}
	clear(w.sleepers[len(rest):])
	w.sleepers = rest
	w.asleep.Store(int32(len(rest)))
	return some
}

// forget removes s, whose connection is closed.
func (w *waker) forget(s *sleeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.sleepers, s); i >= 0 {
		w.sleepers = slices.Delete(w.sleepers, i, i+1)
		w.asleep.Store(int32(len(w.sleepers)))
	}
}

// close stops the timer. After it, no sleeper is woken.
func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.sleepers = true, nil
	w.asleep.Store(0)
	if w.timer != nil {
		w.timer.Stop()
	}
}
