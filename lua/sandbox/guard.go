package sandbox

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

const (
	// BytesPerStep is how many bytes are moved in the time of an instruction.
	BytesPerStep = 64
)

// Reasons of our own to end a script; the caller's come through Kill. That of memory is
// what Lua says.
const (
	reasonMemory  = "not enough memory"
	reasonEndless = "script takes too long for what it says"
)

// Guard is asked before every instruction: the interpreter evaluates the Done of
// its context there. It is no context otherwise.
//
// killed is set by any goroutine and stays set, since a script could catch one
// error and go on. Everything else belongs to the executing goroutine.
type Guard struct {
	killed atomic.Bool
	reason atomic.Pointer[string]

	Limits Limits
	// left counts down from given to the next look at the heap.
	left, given int
	usage       usage
	Patterns    int64
	coroutines  int
	// spent counts, roughly, what has been done; at a budget that is not 0
	// pause is called, once, or else the script is killed.
	spent, budget int64
	pause         func()
}

var _ context.Context = (*Guard)(nil)

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newGuard(m *Memory) Guard { return Guard{Limits: m.limits, usage: newUsage(m)} }

// begin readies the guard for another script.
func (g *Guard) begin() {
	g.given = int(g.usage.stride.Load())
	g.left = g.given
	g.usage.begin()
	g.coroutines = 0
	g.Patterns = g.Limits.PatternSteps
	g.spent = 0
}

// end forgets the script.
func (g *Guard) end() {
	g.pause, g.budget = nil, 0
	g.usage.end()
}

// PauseAfter has pause called, once, after about so many instructions of the next script.
func (g *Guard) PauseAfter(instructions int, pause func()) {
	g.budget, g.pause = int64(instructions), pause
}

// Spent is about how many the last script took.
func (g *Guard) Spent() int { return int(g.spent) + g.given - g.left }

// Killed says that the script is to end.
func (g *Guard) Killed() bool { return g.killed.Load() }

// Lacked says that the script was ended since the heap was at its bound, whoever it was
// that had brought it there.
func (g *Guard) Lacked() bool { return g.usage.lacked }

// Spend counts n instructions that are done elsewhere. It looks at nothing, which
// the next instruction does.
func (g *Guard) Spend(n int) { g.left -= n }

// Done counts an instruction. The channel is nil, so that the interpreter goes
// on, or closed, so that it raises Err.
func (g *Guard) Done() <-chan struct{} {
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
func (g *Guard) Err() error { return errors.New(g.Why()) }

// Deadline is part of a context and says nothing.
func (g *Guard) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is part of a context and says nothing.
func (g *Guard) Value(any) any { return nil }

// Kill ends the script; see lua.Run.Kill. Any goroutine may call it.
func (g *Guard) Kill(reason string) {
	g.reason.CompareAndSwap(nil, &reason)
	g.killed.Store(true)
}

// Why is the reason that the script was ended for.
func (g *Guard) Why() string {
	if p := g.reason.Load(); p != nil {
		return *p
	}
	return "script was stopped"
}

// look compares the heap with what scripts may take.
func (g *Guard) look() {
	g.spent += int64(g.given - g.left)
	g.left = 0
	g.given = 0
	if g.budget != 0 && g.spent >= g.budget {
		if g.pause == nil {
			g.Kill(reasonEndless)
		}
		g.PauseNow()
	}
	if !g.usage.fits(g.PauseNow) {
		g.Kill(reasonMemory)
	}
	g.given = g.usage.setStride(g.usage.left())
	g.left = g.given
}

// PauseNow calls pause, if that has not been done, before something that takes long.
func (g *Guard) PauseNow() {
	if pause := g.pause; pause != nil {
		g.pause, g.budget = nil, 0
		pause()
	}
}

// MayGoOn looks at the budget and the heap if that is due, and reports whether the script is to go on,
// where nothing can be raised.
func (g *Guard) MayGoOn() bool {
	if g.left < 0 {
		g.look()
	}
	return !g.killed.Load()
}

// Step counts n steps of a library function's loop as instructions, and raises
// if the script is killed.
func (g *Guard) Step(l *glua.LState, n int) {
	g.left -= n
	if g.left < 0 {
		g.look()
	}
	g.Stop(l)
}

// Stop raises if the script is killed.
func (g *Guard) Stop(l *glua.LState) {
	if g.killed.Load() {
		Raisef(l, "%s", g.Why())
	}
}

// Coroutine counts one more, and raises if these are too many.
func (g *Guard) Coroutine(l *glua.LState) {
	g.coroutines++
	if g.coroutines > g.Limits.Coroutines {
		Raisef(l, "too many coroutines, at most %d", g.Limits.Coroutines)
	}
}

// Announce says that a string of n bytes is about to be built, before it is. It
// raises if that is too long, or too much.
func (g *Guard) Announce(l *glua.LState, n int) {
	if n < 0 || n > g.Limits.Strings {
		Raisef(l, "string is too long, at most %d bytes", g.Limits.Strings)
	}
	g.Spend(n / BytesPerStep)
	g.Reserve(l, n)
}

// Reserve says that n bytes are about to be allocated, of which nothing is too long. It
// raises if that is too much.
func (g *Guard) Reserve(l *glua.LState, n int) {
	if !g.Fits(n) {
		g.Stop(l)
	}
}

// Fits is reserve where nothing can be raised: it reports whether the script may go on.
func (g *Guard) Fits(n int) bool {
	g.usage.announced += int64(n)
	// The first look has to come before much memory is taken, to count it.
	if g.usage.announced > memoryStep || g.left < 0 || n > 4096 && !g.usage.looked {
		g.look()
	}
	return !g.killed.Load()
}
