package sandbox

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

const (
	// BytesPerStep is the number of bytes that are copied in the time of an instruction.
	BytesPerStep = 64
)

// Reasons of this package for ending a script; callers pass others to Kill. That of memory has the
// text of Lua.
const (
	reasonMemory  = "not enough memory"
	reasonEndless = "script takes too long for what it says"
)

// Guard is called before every instruction: the interpreter calls the Done of its context there.
// Guard is not used as a context otherwise.
//
// Any goroutine may set killed. It stays set, since a script could catch one error and continue.
// All other fields belong to the executing goroutine.
type Guard struct {
	killed atomic.Bool
	reason atomic.Pointer[string]

	Limits Limits
	// left counts down from given to 0, when the heap is checked again.
	left, given int
	usage       usage
	Patterns    int64
	coroutines  int
	// spent is the approximate number of instructions so far. At budget, if that is not 0, pause is
	// called once; without a pause the script is killed.
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

// begin prepares the guard for another script.
func (g *Guard) begin() {
	g.given = int(g.usage.stride.Load())
	g.left = g.given
	g.usage.begin()
	g.coroutines = 0
	g.Patterns = g.Limits.PatternSteps
	g.spent = 0
}

// end discards the data of the script.
func (g *Guard) end() {
	g.pause, g.budget = nil, 0
	g.usage.end()
}

// PauseAfter makes the next script call pause, once, after about that many instructions.
func (g *Guard) PauseAfter(instructions int, pause func()) {
	g.budget, g.pause = int64(instructions), pause
}

// Spent returns the approximate number of instructions of the last script.
func (g *Guard) Spent() int { return int(g.spent) + g.given - g.left }

// Killed reports whether the script has to end.
func (g *Guard) Killed() bool { return g.killed.Load() }

// Lacked reports whether the script was ended because the heap was at its bound, even if others
// have filled it.
func (g *Guard) Lacked() bool { return g.usage.lacked }

// Spend counts n instructions that were done elsewhere. The next instruction makes the checks.
func (g *Guard) Spend(n int) { g.left -= n }

// Done counts an instruction. The channel is nil to make the interpreter continue, or closed to
// make it raise Err.
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

// Err returns the error for a killed script.
func (g *Guard) Err() error { return errors.New(g.Why()) }

// Deadline implements context.Context and returns nothing.
func (g *Guard) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context and returns nothing.
func (g *Guard) Value(any) any { return nil }

// Kill ends the script; see lua.Run.Kill. Any goroutine may call it.
func (g *Guard) Kill(reason string) {
	g.reason.CompareAndSwap(nil, &reason)
	g.killed.Store(true)
}

// Why returns the reason why the script was ended.
func (g *Guard) Why() string {
	if p := g.reason.Load(); p != nil {
		return *p
	}
	return "script was stopped"
}

// look compares the heap with the bound for scripts.
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

// PauseNow calls pause, if it has not been called yet, before an operation that takes long.
func (g *Guard) PauseNow() {
	if pause := g.pause; pause != nil {
		g.pause, g.budget = nil, 0
		pause()
	}
}

// MayGoOn checks the budget and, if that is due, the heap, and reports whether the script may
// continue. It is for code that cannot raise errors.
func (g *Guard) MayGoOn() bool {
	if g.left < 0 {
		g.look()
	}
	return !g.killed.Load()
}

// Step counts n steps of a library function's loop as instructions, and raises an error if the
// script is killed.
func (g *Guard) Step(l *glua.LState, n int) {
	g.left -= n
	if g.left < 0 {
		g.look()
	}
	g.Stop(l)
}

// Stop raises an error if the script is killed.
func (g *Guard) Stop(l *glua.LState) {
	if g.killed.Load() {
		Raisef(l, "%s", g.Why())
	}
}

// Coroutine counts a new coroutine, and raises an error if there are too many.
func (g *Guard) Coroutine(l *glua.LState) {
	g.coroutines++
	if g.coroutines > g.Limits.Coroutines {
		Raisef(l, "too many coroutines, at most %d", g.Limits.Coroutines)
	}
}

// Announce is called before a string of n bytes is built. It raises an error if the string is too
// long, or if there is not enough memory.
func (g *Guard) Announce(l *glua.LState, n int) {
	if n < 0 || n > g.Limits.Strings {
		Raisef(l, "string is too long, at most %d bytes", g.Limits.Strings)
	}
	g.Spend(n / BytesPerStep)
	g.Reserve(l, n)
}

// Reserve is called before n bytes are allocated, not as a single string. It raises an error if
// there is not enough memory.
func (g *Guard) Reserve(l *glua.LState, n int) {
	if !g.Fits(n) {
		g.Stop(l)
	}
}

// Fits is Reserve for code that cannot raise errors: it reports whether the script may continue.
func (g *Guard) Fits(n int) bool {
	g.usage.announced += int64(n)
	// The first check must come before much memory is allocated, to count it.
	if g.usage.announced > memoryStep || g.left < 0 || n > 4096 && !g.usage.looked {
		g.look()
	}
	return !g.killed.Load()
}
