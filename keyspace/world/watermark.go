package world

import (
	"slices"
	"sync"

	"github.com/cellserver/cellserver/limit"
)

// Watermark finds an instant such that no batch that has yet to leave is earlier. Any goroutine may
// use it. The zero value has no such instant yet.
type Watermark struct {
	mu    sync.Mutex
	known limit.Instant // guarded by mu: the result of the last call of Advance
	// next is a later instant, at which the batches of running were inside.
	next    limit.Instant // guarded by mu
	running []turn        // guarded by mu
}

// turn identifies a batch that runs or has ended.
type turn struct {
	member *Member
	turns  uint32
}

// Advance returns the watermark of batches that enter at g and then read the clock now: the present
// instant if no batch runs, otherwise the instant of an earlier call whose running batches have all
// left since. So after a long batch, such as a script, two calls are needed to advance it. It is 0
// until one is known. Advance does not block.
//
// Once all batches have left that were inside at an instant, the batches to come are later. A batch
// that has stopped the world may leave and continue in another goroutine until it starts the world.
// So Advance concludes nothing while the world is stopped, which it checks after the members.
func (w *Watermark) Advance(g *Lock, now func() limit.Instant) limit.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(t turn) bool { return t.member.turns.Load() != t.turns })
	if len(w.running) > 0 || g.closed.Load() {
		return w.known
	}
	w.known = max(w.known, w.next)
	next := now() // must be read before the members
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

// inside appends to dst the batches that run. A batch that enters meanwhile may be among them.
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
