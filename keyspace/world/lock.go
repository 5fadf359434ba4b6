package world

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Lock stops all batches but one. A goroutine that runs a batch is inside. Stopping the Lock keeps
// others from entering and waits until those inside have left, which takes as long as the longest
// batch.
type Lock struct {
	closed atomic.Bool
	// missed counts the goroutines that have waited in vain for the world to start.
	missed atomic.Int32
	// admits is the number of woken goroutines that must enter before the world is stopped again.
	admits atomic.Int32

	mu       sync.Mutex
	stations []*Member // guarded by mu; replaced, never changed
	waiters  []func()  // guarded by mu
}

// spins is the number of checks that Stop makes before it yields to other goroutines. That takes
// some microseconds if the goroutine is locked to its thread.
const spins = 1000

const (
	// patience is the number of checks, which take some microseconds, that a goroutine makes for
	// the world to start before it gives up entering. A script takes as long, and parking and
	// waking takes longer. Once patient goroutines have given up, the world is stopped for longer,
	// and others give up without a check.
	patience = 5000
	patient  = 4
	// maxAdmits bounds how often a Stop is refused in favour of waiting goroutines, which may also
	// have gone away.
	maxAdmits = 4
)

// Member says for one participant, such as a handle of the store, whether it is inside. It fills a
// cache line, since its owner writes it twice per batch.
type Member struct {
	// turns counts how often it has entered and left: it is odd while it is inside. Only its owner
	// writes it.
	turns atomic.Uint32
	_     [60]byte
}

// inside reports whether a batch runs at st.
func (st *Member) inside() bool { return st.turns.Load()%2 == 1 }

// pass enters or leaves, by turns.
func (st *Member) pass() { st.turns.Store(st.turns.Load() + 1) }

// Add makes Stop wait for batches of st.
func (g *Lock) Add(st *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stations = append(slices.Clone(g.stations), st)
}

// Remove undoes Add.
func (g *Lock) Remove(st *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.stations, st); i >= 0 {
		g.stations = slices.Delete(slices.Clone(g.stations), i, i+1)
	}
}

// Enter begins a batch of st. While the world is stopped it returns false and begins nothing.
//
// Enter and Stop mirror each other: Enter writes turns and then reads closed, Stop writes closed
// and then reads turns, so that at least one of them sees the other.
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

// startsSoon waits some microseconds for the world to start, and reports whether it has started.
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

// Leave ends the batch.
func (st *Member) Leave() { st.pass() }

// Stop stops the world for all members but own, which may be nil, and returns true once all others
// have left. It returns false at once and changes nothing if another goroutine has stopped the
// world, or if a goroutine that waited for the world to start has not entered since. The caller
// then has to leave and wait by NotifyStart, because the other goroutine waits for it.
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

// Start lets members enter again and wakes the waiting goroutines, in the order in which they came.
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

// WakeWaiting wakes the waiting goroutines although the world is stopped. They have to call
// NotifyStart again if they still want to enter.
func (g *Lock) WakeWaiting() {
	g.mu.Lock()
	waiters := g.waiters
	g.waiters = nil
	g.mu.Unlock()
	for _, wake := range waiters {
		wake()
	}
}

// NotifyStart arranges for wake to be called once the world starts, or calls it at once if the
// world is not stopped. wake must not block.
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
