package world

import (
	"slices"
	"sync"

	"github.com/cellserver/cellserver/limit"
)

// Watermark finds an instant that is not later than the instants of all batches that have yet to
// leave. Any goroutine may use it. The zero value has found no such instant yet.
type Watermark struct {
	mu    sync.Mutex
	known limit.Instant // the last result of Advance; guarded by mu
	// next is the instant of the last reading of the clock. The batches of running were inside at
	// that time; those that have left since are removed from running.
	next    limit.Instant // guarded by mu
	running []turn        // the batches that were inside at next and have not left since; guarded by mu
}

// turn identifies a batch by its member and the member's turns while the batch is inside.
type turn struct {
	member *Member
	turns  uint32
}

// Advance advances the watermark and returns it, for batches that enter g and then read the clock
// by now. The watermark is the present instant if no batch runs. Otherwise it is the instant of an
// earlier call of Advance, and all batches that were running at that call have left since. So after
// a long batch, such as a script, two calls are needed to advance it. It is 0 until an instant is
// known. Advance does not wait for batches.
//
// Once all batches that were inside at some instant have left, all other batches read the clock
// later than that instant. But a batch that has stopped the world may leave and continue in another
// goroutine until it starts the world. So Advance concludes nothing while the world is stopped. It
// checks that after it has read the members.
func (w *Watermark) Advance(g *Lock, now func() limit.Instant) limit.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(t turn) bool { return t.member.turns.Load() != t.turns })
	if len(w.running) > 0 || g.closed.Load() {
		return w.known
	}
	w.known = max(w.known, w.next)
	next := now() // the clock must be read before the members
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

// inside appends to dst the batches that run and returns the result. A batch that enters during the
// call may be among them.
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
