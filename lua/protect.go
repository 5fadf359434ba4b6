package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// mark is one protected call that runs.
type mark struct {
	// last is the highest captured variable when it began.
	last *glua.Upvalue
	// handler is what a script gave to xpcall, or nil.
	handler *glua.LFunction
	// top is whether it is the script itself.
	top  bool
	done bool
}

// errorCopies is how many times a long message is in memory while it is raised.
const errorCopies = 3

// failure is an error that nobody caught, and where it was raised.
type failure struct {
	value  glua.LValue
	source string
	line   int
}

// protect calls the function below nargs arguments on the stack. Panics end here.
func (r *Run) protect(l *glua.LState, nargs, nret int, m mark) (err error) {
	m.last = highestUpvalue(l)
	r.marks = append(r.marks, m)
	depth := len(r.marks)
	previous := *errorFunc(l)
	defer func() {
		if p := recover(); p != nil {
			// Out of registers, so that PCall could not call its handler either.
			r.overflow(fmt.Sprint(p))
			err = fmt.Errorf("%v", p)
		}
		*errorFunc(l) = previous
		r.unhandled = err != nil && !r.marks[depth-1].done
		if r.unhandled {
			closeUpvaluesAfter(l, m.last)
		}
		r.marks = r.marks[:depth-1]
	}()
	err = l.PCall(nargs, nret, r.onError)
	if err != nil {
		r.inspect(err)
	}
	return err
}

// inspect looks for errors after which a state is not trusted again.
func (r *Run) inspect(err error) {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns this very type
		r.suspect(failed.Object)
	}
}

// suspect judges an error by its text, which is all that is left of a panic when
// its handler is called. A script that raises such a text ends itself.
func (r *Run) suspect(value glua.LValue) {
	text, _ := value.(glua.LString)
	switch {
	case strings.HasPrefix(string(text), "runtime error: "):
		r.overflow(string(text))
	case strings.Contains(string(text), "stack overflow"), strings.Contains(string(text), "registry overflow"):
		r.dirty = true
	}
}

// overflow ends the script: what a panic left behind is not to be run on.
func (r *Run) overflow(text string) {
	r.dirty = true
	reason := "the interpreter failed"
	if strings.Contains(text, "registry overflow") || strings.Contains(text, "index out of range") {
		// The interpreter steps beyond its registers if a call brings in too many.
		reason = "stack overflow"
	}
	r.guard.killWith(reason)
}

// caught is called where an error was raised, before the stack is unwound.
func (r *Run) caught(l *glua.LState) int {
	m, depth := r.marks[len(r.marks)-1], len(r.marks)
	value := l.Get(1)
	r.suspect(value)
	if message, ok := value.(glua.LString); ok {
		// The interpreter spells long keys out, and has several copies of a message.
		r.guard.fits(errorCopies * len(message))
	}
	switch {
	case m.top:
		r.failed(l, value)
	case m.handler != nil && !r.guard.killed.Load():
		l.Push(m.handler)
		l.Push(value)
		l.Call(1, 1)
		value = l.Get(-1)
	}
	closeUpvaluesAfter(l, m.last)
	r.marks[depth-1].done = true
	l.Push(value)
	return 1
}

// failed notes the error and its place: the function that raised it, or its
// caller if that is one of ours.
func (r *Run) failed(l *glua.LState, value glua.LValue) {
	r.failure = failure{value: value}
	for level := 1; level <= 2; level++ {
		frame, ok := l.GetStack(level)
		if !ok {
			return
		}
		if _, err := l.GetInfo("Sl", frame, glua.LNil); err != nil {
			return
		}
		if frame.What != "G" && frame.What != "C" && frame.CurrentLine > 0 {
			r.failure.source, r.failure.line = frame.Source, frame.CurrentLine
			return
		}
	}
}

// pcall is Redis' own: of an error that is a table with an err it returns that.
func (r *Run) pcall(l *glua.LState) int {
	if l.GetTop() == 0 || !callable(l, l.Get(1)) {
		l.Push(glua.LFalse)
		l.Push(glua.LString("attempt to call a " + l.Get(1).Type().String() + " value"))
		return 2
	}
	if err := r.protect(l, l.GetTop()-1, glua.MultRet, mark{}); err != nil {
		return r.pushFailure(l, err)
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

// xpcall calls without arguments, as in Lua 5.1.
func (r *Run) xpcall(l *glua.LState) int {
	checkAny(l, 2)
	handler, ok := l.Get(2).(*glua.LFunction)
	if !ok || !callable(l, l.Get(1)) {
		l.Push(glua.LFalse)
		l.Push(glua.LString("attempt to call a " + l.Get(1).Type().String() + " value"))
		return 2
	}
	top := l.GetTop()
	l.Push(l.Get(1))
	if err := r.protect(l, 0, glua.MultRet, mark{handler: handler}); err != nil {
		r.guard.stop(l)
		l.Push(glua.LFalse)
		if r.unhandled {
			l.Push(glua.LString("error in error handling"))
		} else {
			l.Push(objectOf(err))
		}
		return 2
	}
	l.Insert(glua.LTrue, top+1)
	return l.GetTop() - top
}

func callable(l *glua.LState, v glua.LValue) bool {
	if v.Type() == glua.LTFunction {
		return true
	}
	return l.GetMetaField(v, "__call").Type() == glua.LTFunction
}

func objectOf(err error) glua.LValue {
	if failed, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns this very type
		return failed.Object
	}
	return glua.LString(err.Error())
}

func (r *Run) pushFailure(l *glua.LState, err error) int {
	r.guard.stop(l)
	value := objectOf(err)
	if table, ok := value.(*glua.LTable); ok {
		if text := table.RawGetString("err"); text.Type() == glua.LTString || text.Type() == glua.LTNumber {
			value = text
		}
	}
	l.Push(glua.LFalse)
	l.Push(value)
	return 2
}

// raise is the function error.
func (r *Run) raise(l *glua.LState) int {
	level := int(optInt(l, 2, 1))
	v := l.Get(1)
	if text, ok := value.Text(v); ok && level > 0 {
		r.guard.announce(l, len(text))
		v = glua.LString(where(l, level) + text)
	}
	if text, ok := v.(glua.LString); ok {
		r.throw(l, text)
		return 0
	}
	l.Error(v, 0)
	return 0
}

// throw raises a string as it is: not every string is a format.
func (r *Run) throw(l *glua.LState, text glua.LString) { l.Error(text, 0) }

// raisef raises a message with the place of the caller in front, which is none if
// that is a function of ours.
func raisef(l *glua.LState, format string, args ...any) {
	for _, arg := range args {
		if text, ok := arg.(string); ok && len(text) > 4096 {
			if g, ok := l.Context().(*guard); ok && !g.killed.Load() {
				g.reserve(l, errorCopies*len(text))
			}
		}
	}
	l.Error(glua.LString(where(l, 1)+fmt.Sprintf(format, args...)), 0)
}

// where is the place of a function on the stack, as it stands before messages.
func where(l *glua.LState, level int) string {
	frame, ok := l.GetStack(level)
	if !ok {
		return ""
	}
	if _, err := l.GetInfo("Sl", frame, glua.LNil); err != nil || frame.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", frame.Source, frame.CurrentLine)
}
