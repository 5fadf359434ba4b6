package world

import (
	"slices"
	"sync"

	"github.com/cellserver/cellserver/limit"
)

// Watermark finds an instant that no batch is earlier than which has not left yet. Any goroutine may
// use it. The zero value knows none.
type Watermark struct {
	mu    sync.Mutex
	known limit.Instant // guarded by mu: what the last call of Advance returned
	// next is a later instant, at which the batches of running ran.
	next    limit.Instant // guarded by mu
	running []turn        // guarded by mu
}

// turn is a batch that runs, or ran.
type turn struct {
	member *Member
	turns  uint32
}

// Advance returns the watermark of batches that enter at g and then read the clock now: the instant of
// those that run, or the present one. It is 0 until one is known, and gets no further than a call found:
// after a long batch, such as a script, two calls are needed to go on. It waits for nothing.
//
// Once all batches have left that were inside at an instant, those to come are later. A batch that has
// stopped the world may leave and go on in another goroutine until it starts the world: so nothing is
// concluded while that is stopped, which is looked at behind the members.
func (w *Watermark) Advance(g *Lock, now func() limit.Instant) limit.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(t turn) bool { return t.member.turns.Load() != t.turns })
	if len(w.running) > 0 || g.closed.Load() {
		return w.known
	}
	w.known = max(w.known, w.next)
	next := now() // before anything is looked at
	running := g.inside(w.running)
	if g.closed.Load() {
		w.running = running[:0]
		return w.known
	}
	if w.next, w.running = next, running; len(running) == 0 {
		w.known = next
	}
	return w.known
}

// inside appends to dst the batches that run. One that enters meanwhile may be among them.
func (g *Lock) inside(dst []turn) []turn {
	g.mu.Lock()
	members := g.stations
	g.mu.Unlock()
	for _, st := range members {
		if n := st.turns.Load(); n%2 == 1 {
			dst = append(dst, turn{st, n})
		}
	}
	return dst
}
