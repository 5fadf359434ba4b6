package remote

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// epoch is the civil instant at the beginning of virtual time.
const epoch = limit.Instant(1_800_000_000 * time.Second)

// world is virtual time. Events happen in order of time, on the goroutine that calls run, and
// events of one instant in the order in which they were scheduled. Equal seeds make equal
// histories.
type world struct {
	now    time.Duration
	due    events
	asked  uint64
	random *rand.Rand
}

func newWorld(seed uint64) *world {
	return &world{random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// after calls f after d, unless stop is called before, which then returns true.
func (w *world) after(d time.Duration, f func()) (stop func() bool) {
	w.asked++
	e := &event{at: w.now + max(d, 0), asked: w.asked, happen: f}
	heap.Push(&w.due, e)
	return func() bool {
		pending := e.happen != nil
		e.happen = nil
		return pending
	}
}

// every calls f every d until the instant.
func (w *world) every(d, until time.Duration, f func()) {
	var again func()
	again = func() {
		f()
		if w.now+d <= until {
			w.after(d, again)
		}
	}
	w.after(d, again)
}

// runUntil runs the events up to and including the instant, which is then now.
func (w *world) runUntil(at time.Duration) {
	for len(w.due) > 0 && w.due[0].at <= at {
		w.step()
	}
	w.now = max(w.now, at)
}

// step runs the next event; false if there is none.
func (w *world) step() bool {
	if len(w.due) == 0 {
		return false
	}
	e := heap.Pop(&w.due).(*event)
	w.now = max(w.now, e.at)
	if f := e.happen; f != nil {
		e.happen = nil
		f()
	}
	return true
}

// runFor advances time by d.
func (w *world) runFor(d time.Duration) { w.runUntil(w.now + d) }

// chance returns true with that probability.
func (w *world) chance(p float64) bool { return p > 0 && w.random.Float64() < p }

// upTo returns a random duration below d, 0 if d is 0.
func (w *world) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.random.Int64N(int64(d)))
}

// civil returns the present instant of a correct clock.
func (w *world) civil() limit.Instant { return epoch.Add(w.now) }

type event struct {
	at     time.Duration
	asked  uint64
	happen func()
}

type events []*event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].asked < e[j].asked
}
func (e *events) Push(x any) { *e = append(*e, x.(*event)) }

func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}
