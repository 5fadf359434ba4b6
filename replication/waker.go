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
	// linger is the time for which new bytes of the stream wait for more bytes, before a replica
	// that has been sent everything is woken. Waking a replica costs more than sending a record.
	// A busy event loop gathers the bytes that arrive meanwhile at no cost.
	linger = time.Millisecond
	// lingerBytes is the number of waiting bytes that ends linger early, because sending so many
	// bytes costs more than waking the replica.
	lingerBytes = 64 << 10
)

// waker wakes, when the stream continues, the replicas that have been sent everything.
type waker struct {
	after func(time.Duration, func()) clock.Timer

	asleep atomic.Int32 // number of elements of sleepers, which may be read without the lock
	armed  atomic.Bool  // whether a timer is running

	mu       sync.Mutex // mu guards the fields below
	sleepers []*sleeper
	timer    clock.Timer
	closed   bool
}

// sleeper is the part of a sender that the waker uses.
type sleeper struct {
	peer    transport.Peer
	backlog *Backlog
	slept   uint64 // offset up to which the replica had been sent everything when it fell asleep; guarded by the mutex of the waker
}

// waits returns the number of bytes of the stream that were not sent to the replica. The caller
// must hold the mutex of the waker.
func (s *sleeper) waits() uint64 { return s.backlog.End() - s.slept }

// sleep registers s to be woken when the stream is longer than at. Afterwards the caller must
// check whether the stream is already longer: see [waker.written].
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
// written to before the sleeper was registered. It wakes the sleepers after linger, or at once if
// urgent is true or many bytes wait.
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

// wakeNow wakes the sleepers at once instead of after linger, because a client has begun to wait
// for replicas.
func (w *waker) wakeNow() {
	if !w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake()
}

// lingerOver wakes the sleepers after linger. If it has woken a sleeper, more bytes are likely to
// follow, so it starts the next timer. To start a timer here wakes no operating system thread. If
// an event loop started it while the other loops sleep, the Go runtime would wake one.
func (w *waker) lingerOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake() && !w.closed {
		w.timer = w.after(linger, w.lingerOver)
		return
	}
	w.armed.Store(false)
}

// wake wakes and removes the sleepers that have bytes to send, and reports whether there were
// any. The caller must hold mu. wake does not stop a running timer: the next linger is then only
// shorter, and at most one timer fires per linger.
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

// forget removes s, because its connection is closed.
func (w *waker) forget(s *sleeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.sleepers, s); i >= 0 {
		w.sleepers = slices.Delete(w.sleepers, i, i+1)
		w.asleep.Store(int32(len(w.sleepers)))
	}
}

// close stops the timer. Afterwards no sleeper is woken.
func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.sleepers = true, nil
	w.asleep.Store(0)
	if w.timer != nil {
		w.timer.Stop()
	}
}
