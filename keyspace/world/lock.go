package world

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Lock stops all but one. Who runs a batch is inside; stopping the
// Lock keeps everybody from entering and waits until all others have left, which
// takes as long as the longest batch.
type Lock struct {
	closed atomic.Bool
	// missed counts those who have waited in vain for the world to start.
	missed atomic.Int32
	// admits is how many of those who were woken must enter before the world is stopped again.
	admits atomic.Int32

	mu       sync.Mutex
	stations []*Member // guarded by mu; replaced, never changed
	waiters  []func()  // guarded by mu
}

// spins is how often Close looks before it lets the scheduler run somebody else,
// which takes some microseconds for a goroutine that holds its thread.
const spins = 1000

const (
	// patience is how often somebody who is to enter looks whether the world starts,
	// some microseconds: a script takes as long, and to park and to be woken takes
	// longer. Once patient ones have looked in vain it is closed for longer.
	patience = 5000
	patient  = 4
	// maxAdmits bounds how often a Close is refused for the sake of those who wait, who
	// may also have gone away.
	maxAdmits = 4
)

// Member is where somebody, a handle of the store, says whether it is inside. It fills a cache line, since
// its owner writes it twice per batch.
type Member struct {
	// turns counts how often it has entered and left: it is odd while it is inside. Only its owner
	// writes it.
	turns atomic.Uint32
	_     [60]byte
}

// inside reports whether a batch runs at st.
func (st *Member) inside() bool { return st.turns.Load()%2 == 1 }

// pass enters or leaves.
func (st *Member) pass() { st.turns.Store(st.turns.Load() + 1) }

// Add makes Close wait for those inside at st.
func (g *Lock) Add(st *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stations = append(slices.Clone(g.stations), st)
}

// Remove undoes Join.
func (g *Lock) Remove(st *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.stations, st); i >= 0 {
		g.stations = slices.Delete(slices.Clone(g.stations), i, i+1)
	}
}

// Enter says at st that a batch begins. It returns false, and nothing is begun, when the
// world is stopped.
//
// It and Close are each other's mirror: one writes turns and then reads closed,
// the other writes closed and then reads turns, so that at least one of them sees
// the other.
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

// startsSoon waits some microseconds for the world to start.
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

// Leave says that the batch has ended.
func (st *Member) Leave() { st.pass() }

// Stop stops the world for everybody but own, which may be nil, and returns once all
// others have left. If somebody else has closed it, or has waited for it and not been in
// since, it returns false at once and nothing has changed: the caller has to leave and
// Wait, for the other one waits for it.
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

// Start lets everybody in again and wakes those who wait, in the order in which
// they came.
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

// WakeWaiting wakes those who wait although the world is stopped. They have to Wait
// again if they still want to.
func (g *Lock) WakeWaiting() {
	g.mu.Lock()
	waiters := g.waiters
	g.waiters = nil
	g.mu.Unlock()
	for _, wake := range waiters {
		wake()
	}
}

// NotifyStart has wake called once the world starts; at once if it is open. wake must not
// block.
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
