package sandbox

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

const (
	// BytesPerStep is the number of bytes that are copied in the time of one instruction.
	BytesPerStep = 64
)

// These are the reasons for which this package ends a script. Other packages pass their own reasons
// to Kill. reasonMemory has the text of Lua.
const (
	reasonMemory  = "not enough memory"
	reasonEndless = "script takes too long for what it says"
)

// Guard counts and bounds the instructions and the memory of a script. The interpreter calls Done
// before every instruction, since it takes the guard for the context of the state; the guard is not
// used as a context otherwise.
//
// Limits has the limits of a script. Patterns is the number of steps of pattern matching that the
// script has left. Any goroutine may set killed by calling Kill. killed remains set, since a script
// could catch one error and continue. All fields but killed and reason belong to the goroutine that
// executes the script.
type Guard struct {
	killed atomic.Bool
	reason atomic.Pointer[string]

	Limits Limits
	// left is the number of instructions until the next check of the heap, which happens when left
	// is below 0. given is the value of left after the last check.
	left, given int
	usage       usage
	Patterns    int64
	coroutines  int
	// spent is the number of instructions until the last check. When it reaches budget, the guard
	// calls pause, or kills the script if pause is nil. A budget of 0 means no bound.
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

// begin prepares the guard for another script. killed and the budget stay as they are.
func (g *Guard) begin() {
	g.given = int(g.usage.stride.Load())
	g.left = g.given
	g.usage.begin()
	g.coroutines = 0
	g.Patterns = g.Limits.PatternSteps
	g.spent = 0
}

// end drops pause and budget, and ends the count of the script's memory.
func (g *Guard) end() {
	g.pause, g.budget = nil, 0
	g.usage.end()
}

// PauseAfter makes the next script call pause, once, after about the given number of instructions.
// If pause is nil, the script is killed instead.
func (g *Guard) PauseAfter(instructions int, pause func()) {
	g.budget, g.pause = int64(instructions), pause
}

// Spent returns the approximate number of instructions of the last script, or of the present one.
func (g *Guard) Spent() int { return int(g.spent) + g.given - g.left }

// Killed reports whether the script has been killed. Any goroutine may call it.
func (g *Guard) Killed() bool { return g.killed.Load() }

// Lacked reports whether the script was ended because the heap was at its bound. The script need
// not be the cause: keys or other scripts may have filled the heap.
func (g *Guard) Lacked() bool { return g.usage.lacked }

// Spend counts n instructions for work outside of the interpreter. It does not check any bound; the
// next instruction does.
func (g *Guard) Spend(n int) { g.left -= n }

// Done counts an instruction. At intervals it also checks the bounds. It returns nil if the script
// may continue. If the script has been killed, it returns a closed channel, which makes the
// interpreter raise Err.
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

// Err returns the error of a killed script.
func (g *Guard) Err() error { return errors.New(g.Why()) }

// Deadline implements context.Context. It returns no deadline.
func (g *Guard) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context. It returns nil.
func (g *Guard) Value(any) any { return nil }

// Kill ends the present script, or the next one, with an error whose text is reason. If Kill is
// called more than once, the first reason counts. Any goroutine may call it.
func (g *Guard) Kill(reason string) {
	g.reason.CompareAndSwap(nil, &reason)
	g.killed.Store(true)
}

// Why returns the reason with which the script was killed, or a default text.
func (g *Guard) Why() string {
	if p := g.reason.Load(); p != nil {
		return *p
	}
	return "script was stopped"
}

// look checks the budget and the heap, and kills the script if it is over a bound. It may call
// pause. It then sets the number of instructions until the next check.
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

// PauseNow calls pause if it has not been called yet. Call it before an operation that takes long.
func (g *Guard) PauseNow() {
	if pause := g.pause; pause != nil {
		g.pause, g.budget = nil, 0
		pause()
	}
}

// MayGoOn reports whether the script may continue. If enough instructions were counted since the
// last check, it first checks the budget and the heap. It is for code that cannot raise errors.
func (g *Guard) MayGoOn() bool {
	if g.left < 0 {
		g.look()
	}
	return !g.killed.Load()
}

// Step counts n instructions for steps of a library function's loop. At intervals it also checks
// the bounds. It raises an error if the script has been killed.
func (g *Guard) Step(l *glua.LState, n int) {
	g.left -= n
	if g.left < 0 {
		g.look()
	}
	g.Stop(l)
}

// Stop raises an error if the script has been killed.
func (g *Guard) Stop(l *glua.LState) {
	if g.killed.Load() {
		Raisef(l, "%s", g.Why())
	}
}

// Coroutine counts a new coroutine. It raises an error if the script has created too many.
func (g *Guard) Coroutine(l *glua.LState) {
	g.coroutines++
	if g.coroutines > g.Limits.Coroutines {
		Raisef(l, "too many coroutines, at most %d", g.Limits.Coroutines)
	}
}

// Announce must be called before a string of n bytes is built. It counts the copying as
// instructions. It raises an error if the string is too long or if there is not enough memory.
func (g *Guard) Announce(l *glua.LState, n int) {
	if n < 0 || n > g.Limits.Strings {
		Raisef(l, "string is too long, at most %d bytes", g.Limits.Strings)
	}
	g.Spend(n / BytesPerStep)
	g.Reserve(l, n)
}

// Reserve must be called before n bytes are allocated for anything but a single string. It may
// start a garbage collection. It raises an error if there is not enough memory.
func (g *Guard) Reserve(l *glua.LState, n int) {
	if !g.Fits(n) {
		g.Stop(l)
	}
}

// Fits does the same as Reserve for code that cannot raise errors. It reports whether the script
// may continue.
func (g *Guard) Fits(n int) bool {
	g.usage.announced += int64(n)
	// The heap is checked before the first large allocation, since only growth after the first
	// check is counted.
	if g.usage.announced > memoryStep || g.left < 0 || n > 4096 && !g.usage.looked {
		g.look()
	}
	return !g.killed.Load()
}
