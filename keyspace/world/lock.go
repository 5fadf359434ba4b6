package world

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Lock can stop all batches but one. A goroutine that runs a batch is inside the lock. [Lock.Stop]
// keeps other goroutines from entering and waits until those inside have left, which takes as long
// as the longest batch. The zero value is a lock that is not stopped.
type Lock struct {
	closed atomic.Bool // whether the world is stopped
	// missed is the number of goroutines that have waited in vain for the world to start since the
	// world was stopped.
	missed atomic.Int32
	// admits is the number of woken goroutines that are expected to enter before the world is
	// stopped again. A goroutine that enters decreases it, and so does a Stop that is refused.
	admits atomic.Int32

	mu       sync.Mutex
	stations []*Member // the participants; the slice is guarded by mu, and is replaced, never changed
	waiters  []func()  // functions that wake goroutines which wait for the world to start; guarded by mu
}

// spins is the number of checks of a member that Stop makes before it yields to other goroutines.
// Yielding takes some microseconds if the goroutine is locked to its thread.
const spins = 1000

const (
	// patience is the number of times that Enter checks whether the world has started, before it
	// gives up. The checks take some microseconds in all. A script takes about as long, and parking
	// and waking a goroutine takes longer. Once as many goroutines as patient have given up, the
	// world will be stopped for longer, and others give up without a check.
	patience = 5000
	patient  = 4
	// maxAdmits is the maximum number of times that Stop is refused in favour of goroutines that
	// wait for the world to start. These goroutines may have gone away.
	maxAdmits = 4
)

// Member records for one participant, such as a handle of the keyspace, whether the participant is
// inside the lock. A member fills a cache line, since its owner writes it twice per batch.
type Member struct {
	// turns is the number of times that the participant has entered and left. It is odd while the
	// participant is inside. Only the goroutine of the participant writes it.
	turns atomic.Uint32
	_     [60]byte
}

// inside reports whether a batch of st runs.
func (st *Member) inside() bool { return st.turns.Load()%2 == 1 }

// pass records that st enters, if it is outside, or leaves, if it is inside.
func (st *Member) pass() { st.turns.Store(st.turns.Load() + 1) }

// Add adds the member st, for whose batches Stop waits from now on.
func (g *Lock) Add(st *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stations = append(slices.Clone(g.stations), st)
}

// Remove removes the member st, which must be outside.
func (g *Lock) Remove(st *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.stations, st); i >= 0 {
		g.stations = slices.Delete(slices.Clone(g.stations), i, i+1)
	}
}

// Enter begins a batch of st and returns true. While the world is stopped Enter begins nothing; it
// waits some microseconds for the world to start, and then returns false.
//
// Enter writes turns and then reads closed, while Stop writes closed and then reads turns. So at
// least one of the two sees what the other has written.
func (g *Lock) Enter(st *Member) bool {
	for {
		st.pass()
		if !g.closed.Load() {
			if g.admits.Load() > 0 {
				g.admits.Add(-1)
			}
			return true
		}
		st.pass()
		if !g.startsSoon() {
			return false
		}
	}
}

// startsSoon waits some microseconds for the world to start, and reports whether it has started. It
// does not wait if several goroutines have already waited in vain.
func (g *Lock) startsSoon() bool {
	if g.missed.Load() >= patient {
		return false
	}
	for range patience {
		if !g.closed.Load() {
			return true
		}
	}
	g.missed.Add(1)
	return false
}

// Leave ends the batch that Enter has begun.
func (st *Member) Leave() { st.pass() }

// Stop stops the world for all members but own, which may be nil, and returns true once all others
// have left. It returns false at once if another goroutine has stopped the world, or if a goroutine
// that waited for the world to start has not entered since. The caller then has to leave and wait
// by NotifyStart, because the other goroutine waits until the caller has left.
func (g *Lock) Stop(own *Member) bool {
	if g.admits.Load() > 0 && g.admits.Add(-1) >= 0 || !g.closed.CompareAndSwap(false, true) {
		return false
	}
	g.missed.Store(0)
	g.mu.Lock()
	stations := g.stations
	g.mu.Unlock()
	for _, st := range stations {
		if st == own {
			continue
		}
		for n := 0; st.inside(); n++ {
			if n >= spins {
				runtime.Gosched()
			}
		}
	}
	return true
}

// Start starts the world that Stop has stopped: members may enter again. It calls the functions
// passed to NotifyStart, in the order of the calls of NotifyStart.
func (g *Lock) Start() {
	g.mu.Lock()
	waiters := g.waiters
	g.waiters = nil
	g.admits.Store(int32(min(len(waiters), maxAdmits)))
	g.closed.Store(false)
	g.mu.Unlock()
	for _, wake := range waiters {
		wake()
	}
}

// WakeWaiting calls the functions passed to NotifyStart although the world is stopped. A goroutine
// that still wants to enter has to call NotifyStart again.
func (g *Lock) WakeWaiting() {
	g.mu.Lock()
	waiters := g.waiters
	g.waiters = nil
	g.mu.Unlock()
	for _, wake := range waiters {
		wake()
	}
}

// NotifyStart arranges for wake to be called once, when the world starts or WakeWaiting is called.
// If the world is not stopped, NotifyStart calls wake itself. wake must not block.
func (g *Lock) NotifyStart(wake func()) {
	g.mu.Lock()
	if g.closed.Load() {
		g.waiters = append(g.waiters, wake)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	wake()
}
