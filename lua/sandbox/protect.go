package sandbox

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// ProtectedCall is one protected call that runs.
type ProtectedCall struct {
	// last is the highest captured variable when it began.
	last *glua.Upvalue
	// Handler is what a script gave to xpcall, or nil.
	Handler *glua.LFunction
	// Top is whether it is the script itself.
	Top  bool
	done bool
}

// errorCopies is how many times a long message is in memory while it is raised.
const errorCopies = 3

// Failure is an error that nobody caught, and where it was raised.
type Failure struct {
	Value  glua.LValue
	Source string
	Line   int
}

// Protect calls the function below nargs arguments on the stack. Panics end here.
func (s *State) Protect(l *glua.LState, nargs, nret int, m ProtectedCall) (err error) {
	m.last = highestUpvalue(l)
	s.marks = append(s.marks, m)
	depth := len(s.marks)
	previous := *errorFunc(l)
	defer func() {
		if p := recover(); p != nil {
			// Out of registers, so that PCall could not call its handler either.
			s.overflow(fmt.Sprint(p))
			err = fmt.Errorf("%v", p)
		}
		*errorFunc(l) = previous
		s.Unhandled = err != nil && !s.marks[depth-1].done
		if s.Unhandled {
			closeUpvaluesAfter(l, m.last)
		}
		s.marks = s.marks[:depth-1]
	}()
	err = l.PCall(nargs, nret, s.onError)
	if err != nil {
		s.Inspect(err)
	}
	return err
}

// Inspect looks for errors after which a state is not trusted again.
func (s *State) Inspect(err error) {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns this very type
		s.suspect(failed.Object)
	}
}

// suspect judges an error by its text, which is all that is left of a panic when
// its handler is called. A script that raises such a text ends itself.
func (s *State) suspect(value glua.LValue) {
	text, _ := value.(glua.LString)
	switch {
	case strings.HasPrefix(string(text), "runtime error: "):
		s.overflow(string(text))
	case strings.Contains(string(text), "stack overflow"), strings.Contains(string(text), "registry overflow"):
		s.dirty = true
	}
}

// overflow ends the script: what a panic left behind is not to be run on.
func (s *State) overflow(text string) {
	s.dirty = true
	reason := "the interpreter failed"
	if strings.Contains(text, "registry overflow") || strings.Contains(text, "index out of range") {
		// The interpreter steps beyond its registers if a call brings in too many.
		reason = "stack overflow"
	}
	s.Guard.Kill(reason)
}

// caught is called where an error was raised, before the stack is unwound.
func (s *State) caught(l *glua.LState) int {
	m, depth := s.marks[len(s.marks)-1], len(s.marks)
	value := l.Get(1)
	s.suspect(value)
	if message, ok := value.(glua.LString); ok {
		// The interpreter spells long keys out, and has several copies of a message.
		s.Guard.Fits(errorCopies * len(message))
	}
	switch {
	case m.Top:
		s.failed(l, value)
	case m.Handler != nil && !s.Guard.killed.Load():
		l.Push(m.Handler)
		l.Push(value)
		l.Call(1, 1)
		value = l.Get(-1)
	}
	closeUpvaluesAfter(l, m.last)
	s.marks[depth-1].done = true
	l.Push(value)
	return 1
}

// failed notes the error and its place: the function that raised it, or its
// caller if that is one of ours.
func (s *State) failed(l *glua.LState, value glua.LValue) {
	s.Failure = Failure{Value: value}
	for level := 1; level <= 2; level++ {
		frame, ok := l.GetStack(level)
		if !ok {
			return
		}
		if _, err := l.GetInfo("Sl", frame, glua.LNil); err != nil {
			return
		}
		if frame.What != "G" && frame.What != "C" && frame.CurrentLine > 0 {
			s.Failure.Source, s.Failure.Line = frame.Source, frame.CurrentLine
			return
		}
	}
}

// ObjectOf is what was raised, as a value.
func ObjectOf(err error) glua.LValue {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns this very type
		return failed.Object
	}
	return glua.LString(err.Error())
}

// Throw raises a string as it is: not every string is a format.
func (s *State) Throw(l *glua.LState, text glua.LString) { l.Error(text, 0) }

// Raisef raises a message with the place of the caller in front, which is none if
// that is a function of ours.
func Raisef(l *glua.LState, format string, args ...any) {
	for _, arg := range args {
		if text, ok := arg.(string); ok && len(text) > 4096 {
			if g, ok := l.Context().(*Guard); ok && !g.killed.Load() {
				g.Reserve(l, errorCopies*len(text))
			}
		}
	}
	l.Error(glua.LString(Where(l, 1)+fmt.Sprintf(format, args...)), 0)
}

// Where is the place of a function on the stack, as it stands before messages.
func Where(l *glua.LState, level int) string {
	frame, ok := l.GetStack(level)
	if !ok {
		return ""
	}
	if _, err := l.GetInfo("Sl", frame, glua.LNil); err != nil || frame.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", frame.Source, frame.CurrentLine)
}
