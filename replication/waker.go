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
	// linger is for how long bytes of the stream wait for more before a replica is woken
	// that has been sent everything. To wake one costs more than to send a record, and a
	// loop that is busy gathers what comes meanwhile for nothing.
	linger = time.Millisecond
	// lingerBytes is how many bytes wait at most: sending these costs more than waking.
	lingerBytes = 64 << 10
)

// waker wakes the replicas that have been sent everything when the stream goes on.
type waker struct {
	after func(time.Duration, func()) clock.Timer

	asleep atomic.Int32 // the length of sleepers
	armed  atomic.Bool  // a timer runs

	mu       sync.Mutex // guards what follows
	sleepers []*sleeper
	timer    clock.Timer
	closed   bool
}

// sleeper is a replica as its waker sees it.
type sleeper struct {
	peer    transport.Peer
	backlog *Backlog
	slept   uint64 // up to where it had been sent everything; guarded by the mutex of the waker
}

// waits is how many bytes it has not been sent. The mutex of the waker must be held.
func (s *sleeper) waits() uint64 { return s.backlog.End() - s.slept }

// sleep has s woken when the stream goes on behind at. The caller looks at the stream again
// afterwards: see [waker.written].
func (w *waker) sleep(s *sleeper, at uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.slept = at
	if !w.closed && !slices.Contains(w.sleepers, s) {
		w.sleepers = append(w.sleepers, s)
		w.asleep.Store(int32(len(w.sleepers)))
	}
}

// written says that the stream has been written to, or that somebody who went to sleep has
// seen that it had been. Who sleeps is woken soon, or at once if that is urgent or much waits.
func (w *waker) written(urgent bool) {
	if w.asleep.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	most := uint64(0)
	for _, s := range w.sleepers {
		most = max(most, s.waits())
	}
	switch {
	case most == 0:
	case urgent || most >= lingerBytes:
		w.wake()
	case !w.armed.Load():
		w.armed.Store(true)
		w.timer = w.after(linger, w.over)
	}
}

// hurry ends a lingering: somebody has begun to wait for replicas.
func (w *waker) hurry() {
	if !w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake()
}

// over ends a lingering that was long enough. If there was something to send, more is about to
// come, and the next lingering begins: a timer made here wakes no thread, as one would that is
// made by a loop while the others sleep.
func (w *waker) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake() && !w.closed {
		w.timer = w.after(linger, w.over)
		return
	}
	w.armed.Store(false)
}

// wake wakes those for whom there is something, and reports whether there are any. mu must be
// held. A timer is left to run: the next lingering is so much shorter, and there are no more of
// them than one a linger.
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

// forget says that s is gone.
func (w *waker) forget(s *sleeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.sleepers, s); i >= 0 {
		w.sleepers = slices.Delete(w.sleepers, i, i+1)
		w.asleep.Store(int32(len(w.sleepers)))
	}
}

// close stops the timer. Nobody is woken any more.
func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.sleepers = true, nil
	w.asleep.Store(0)
	if w.timer != nil {
		w.timer.Stop()
	}
}
