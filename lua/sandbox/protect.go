package sandbox

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// ProtectedCall is a protected call in progress.
type ProtectedCall struct {
	// last is the highest captured variable at the beginning of the call.
	last *glua.Upvalue
	// Handler is the handler that a script passed to xpcall, or nil.
	Handler *glua.LFunction
	// Top says that the call is the script itself.
	Top  bool
	done bool
}

// calls are the protected calls of a state, and their outcome.
type calls struct {
	guard *Guard
	// dirty says that the state must not be used again.
	dirty   bool
	onError *glua.LFunction
	marks   []ProtectedCall
	// Unhandled says that the handler of the last protected call failed.
	Unhandled bool
	// Failure is the error that ended the script.
	Failure Failure
}

// Failure is an uncaught error, and the position where it was raised.
type Failure struct {
	Value  glua.LValue
	Source string
	Line   int
}

// Protect calls the function below nargs arguments on the stack. It recovers from panics.
func (c *calls) Protect(l *glua.LState, nargs, nret int, m ProtectedCall) (err error) {
	m.last = highestUpvalue(l)
	c.marks = append(c.marks, m)
	depth := len(c.marks)
	previous := *errorFunc(l)
	defer func() {
		if p := recover(); p != nil {
			// There are no registers left, so PCall could not call its handler either.
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

// Inspect marks the state as dirty after an error that makes it unreliable.
func (c *calls) Inspect(err error) {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns this very type
		c.suspect(failed.Object)
	}
}

// suspect classifies an error by its text, which is all that is left of a panic when its handler is
// called. A script that raises such a text ends itself.
func (c *calls) suspect(value glua.LValue) {
	text, _ := value.(glua.LString)
	switch {
	case strings.HasPrefix(string(text), "runtime error: "):
		c.overflow(string(text))
	case strings.Contains(string(text), "stack overflow"), strings.Contains(string(text), "registry overflow"):
		c.dirty = true
	}
}

// overflow ends the script, since the state after a panic must not be used.
func (c *calls) overflow(text string) {
	c.dirty = true
	reason := "the interpreter failed"
	if strings.Contains(text, "registry overflow") || strings.Contains(text, "index out of range") {
		// The interpreter exceeds its registers if a call has too many arguments.
		reason = "stack overflow"
	}
	c.guard.Kill(reason)
}

// caught is called when an error is raised, before the stack is unwound.
func (c *calls) caught(l *glua.LState) int {
	m, depth := c.marks[len(c.marks)-1], len(c.marks)
	value := l.Get(1)
	c.suspect(value)
	if message, ok := value.(glua.LString); ok {
		// The interpreter includes long keys in a message, and makes several copies of it.
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

// failed notes the error and its position: the function that raised it, or its caller if that
// function is one in Go.
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

// ObjectOf returns the raised value.
func ObjectOf(err error) glua.LValue {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns this very type
		return failed.Object
	}
	return glua.LString(err.Error())
}
