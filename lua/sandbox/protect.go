package sandbox

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// ProtectedCall is a protected call in progress, such as pcall.
type ProtectedCall struct {
	// last is the highest captured variable on the stack when the call began, or nil.
	last *glua.Upvalue
	// Handler is the function that a script passed to xpcall, or nil.
	Handler *glua.LFunction
	// Top says that the call is the script itself. done says that caught has handled the error.
	Top  bool
	done bool
}

// calls has the protected calls of a state, the innermost last in marks, and their outcome.
type calls struct {
	guard *Guard
	// dirty says that the interpreter failed or its stack overflowed. The state must not be used
	// for another script.
	dirty   bool
	onError *glua.LFunction
	marks   []ProtectedCall
	// Unhandled says that the last protected call failed without being handled: the handler itself
	// raised an error, or the interpreter panicked.
	Unhandled bool
	// Failure is the error that ended the script. Its zero value means that there was none.
	Failure Failure
}

// Failure is an uncaught error. Source and Line are the position at which it was raised; Source is
// "" if the position is unknown.
type Failure struct {
	Value  glua.LValue
	Source string
	Line   int
}

// Protect calls the function that is on the stack below nargs arguments, and leaves nret results on
// the stack. m is the kind of call. If the function raises an error or panics, Protect returns an
// error, for which ObjectOf returns the raised value.
func (c *calls) Protect(l *glua.LState, nargs, nret int, m ProtectedCall) (err error) {
	m.last = highestUpvalue(l)
	c.marks = append(c.marks, m)
	depth := len(c.marks)
	previous := *errorFunc(l)
	defer func() {
		if p := recover(); p != nil {
			// The interpreter has no registers left, so PCall could not call its handler.
			c.overflow(fmt.Sprint(p))
			err = fmt.Errorf("%v", p)
		}
		*errorFunc(l) = previous
		c.Unhandled = err != nil && !c.marks[depth-1].done
		if c.Unhandled {
			closeUpvaluesAfter(l, m.last)
		}
		c.marks = c.marks[:depth-1]
	}()
	err = l.PCall(nargs, nret, c.onError)
	if err != nil {
		c.Inspect(err)
	}
	return err
}

// Inspect marks the state as dirty if err makes it unreliable. If the interpreter panicked, Inspect
// also kills the script.
func (c *calls) Inspect(err error) {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns exactly this type
		c.suspect(failed.Object)
	}
}

// suspect classifies the error value by its text, since the text is all that is left of a panic
// when the handler is called. A script that raises an error with such a text itself is ended, too,
// or its state is not used again.
func (c *calls) suspect(value glua.LValue) {
	text, _ := value.(glua.LString)
	switch {
	case strings.HasPrefix(string(text), "runtime error: "):
		c.overflow(string(text))
	case strings.Contains(string(text), "stack overflow"), strings.Contains(string(text), "registry overflow"):
		c.dirty = true
	}
}

// overflow kills the script and marks the state as dirty, since the state must not be used after a
// panic. text is the text of the panic.
func (c *calls) overflow(text string) {
	c.dirty = true
	reason := "the interpreter failed"
	if strings.Contains(text, "registry overflow") || strings.Contains(text, "index out of range") {
		// If a call has too many arguments, the interpreter exceeds its registers.
		reason = "stack overflow"
	}
	c.guard.Kill(reason)
}

// caught is the function that the interpreter calls when an error is raised, before the stack is
// unwound. It calls the handler of xpcall, closes the captured variables of the call, and returns
// the value of the error.
func (c *calls) caught(l *glua.LState) int {
	m, depth := c.marks[len(c.marks)-1], len(c.marks)
	value := l.Get(1)
	c.suspect(value)
	if message, ok := value.(glua.LString); ok {
		// The interpreter includes a long key in its message, and makes several copies of the
		// message.
		c.guard.Fits(errorCopies * len(message))
	}
	switch {
	case m.Top:
		c.failed(l, value)
	case m.Handler != nil && !c.guard.killed.Load():
		l.Push(m.Handler)
		l.Push(value)
		l.Call(1, 1)
		value = l.Get(-1)
	}
	closeUpvaluesAfter(l, m.last)
	c.marks[depth-1].done = true
	l.Push(value)
	return 1
}

// failed stores the error value in c.Failure, with the position of the function that raised it. If
// that function is one in Go, the position is in its caller.
func (c *calls) failed(l *glua.LState, value glua.LValue) {
	c.Failure = Failure{Value: value}
	for level := 1; level <= 2; level++ {
		frame, ok := l.GetStack(level)
		if !ok {
			return
		}
		if _, err := l.GetInfo("Sl", frame, glua.LNil); err != nil {
			return
		}
		if frame.What != "G" && frame.What != "C" && frame.CurrentLine > 0 {
			c.Failure.Source, c.Failure.Line = frame.Source, frame.CurrentLine
			return
		}
	}
}

// ObjectOf returns the value that a script or a library raised with err, or the text of err.
func ObjectOf(err error) glua.LValue {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns exactly this type
		return failed.Object
	}
	return glua.LString(err.Error())
}
