package lua

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

const (
	// checkEvery is how many instructions, or steps of a library's loop, pass
	// between two looks at the heap. One instruction allocates at most 1 MiB (a
	// table's array that grows to [arrayMax]), so that a script overshoots by less
	// than its budget.
	checkEvery = 256
	// bytesPerStep is how many bytes are moved in the time of an instruction, and
	// commandSteps how many instructions a command takes at least.
	bytesPerStep = 64
	commandSteps = 16
	// announceEvery is how many bytes of strings may be built between two looks.
	announceEvery = 32 << 20
	// maxCollections is how many collections one script may force by going over
	// its budget with garbage. Each stops other work for a moment.
	maxCollections = 20
)

// Reasons of our own to end a script; the caller's come through Kill.
const (
	reasonMemory   = "script is over its memory limit"
	reasonEndless  = "script takes too long for what it says"
	reasonPatterns = "script spends too many steps on patterns"
)

// guard is asked before every instruction: the interpreter evaluates the Done of
// its context there. It is no context otherwise.
//
// killed is set by any goroutine and stays set, since a script could catch one
// error and go on. Everything else belongs to the executing goroutine.
type guard struct {
	killed atomic.Bool
	reason atomic.Pointer[string]

	limits Limits
	// left counts down to the next look at the heap.
	left int
	// base is the heap at the first look, which a short script never takes.
	base        uint64
	looked      bool
	announced   int64
	collections int
	patterns    int64
	coroutines  int
	// spent counts, roughly, what has been done; at a budget that is not 0
	// pause is called, once, or else the script is killed.
	spent, budget int64
	pause         func()
	sample        []metrics.Sample
}

var _ context.Context = (*guard)(nil)

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newGuard(limits Limits) guard {
	return guard{limits: limits, sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
}

// begin readies the guard for another script.
func (g *guard) begin() {
	g.left = checkEvery
	g.looked = false
	g.announced, g.collections, g.coroutines = 0, 0, 0
	g.patterns = g.limits.PatternSteps
	g.spent = 0
}

// spend counts n instructions that are done elsewhere. It looks at nothing, which
// the next instruction does.
func (g *guard) spend(n int) { g.left -= n }

// Done counts an instruction. The channel is nil, so that the interpreter goes
// on, or closed, so that it raises Err.
func (g *guard) Done() <-chan struct{} {
	g.left--
	if g.left < 0 {
		g.look()
	}
	if g.killed.Load() {
		return closed
	}
	return nil
}

// Err is what a killed script is told.
func (g *guard) Err() error { return errors.New(g.why()) }

// Deadline is part of a context and says nothing.
func (g *guard) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is part of a context and says nothing.
func (g *guard) Value(any) any { return nil }

func (g *guard) killWith(reason string) {
	g.reason.CompareAndSwap(nil, &reason)
	g.killed.Store(true)
}

func (g *guard) why() string {
	if p := g.reason.Load(); p != nil {
		return *p
	}
	return "script was stopped"
}

func (g *guard) heap() uint64 {
	metrics.Read(g.sample)
	return g.sample[0].Value.Uint64()
}

// look compares the heap with what it was at first.
func (g *guard) look() {
	g.spent += int64(checkEvery - g.left)
	g.left = checkEvery
	switch pause := g.pause; {
	case g.budget == 0 || g.spent < g.budget:
	case pause == nil:
		g.killWith(reasonEndless)
	default:
		g.pause, g.budget = nil, 0
		pause()
	}
	now := g.heap()
	if !g.looked {
		g.looked, g.base = true, now
		return
	}
	if !g.over(now) {
		return
	}
	// Most of it may be garbage.
	g.collections++
	if g.collections <= maxCollections {
		runtime.GC()
		now = g.heap()
	}
	if g.over(now) || g.collections > maxCollections {
		g.killWith(reasonMemory)
	}
}

func (g *guard) over(now uint64) bool {
	return now > g.base && now-g.base > uint64(g.limits.Memory)
}

// step counts n steps of a library function's loop as instructions, and raises
// if the script is killed.
func (g *guard) step(l *glua.LState, n int) {
	g.left -= n
	if g.left < 0 {
		g.look()
	}
	g.stop(l)
}

// stop raises if the script is killed.
func (g *guard) stop(l *glua.LState) {
	if g.killed.Load() {
		raisef(l, "%s", g.why())
	}
}

// announce says that a string of n bytes is about to be built, before it is. It
// raises if that is too long, or too much.
func (g *guard) announce(l *glua.LState, n int) {
	if n < 0 || n > g.limits.Strings {
		raisef(l, "string is too long, at most %d bytes", g.limits.Strings)
	}
	g.announced += int64(n)
	g.spend(n / bytesPerStep)
	if g.announced > announceEvery {
		g.announced = 0
		g.look()
	} else if n > 4096 && (!g.looked || g.left < 0) {
		// The first look has to come before the memory is taken.
		g.look()
	}
	g.stop(l)
}
