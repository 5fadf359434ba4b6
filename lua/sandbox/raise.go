package sandbox

import (
	"fmt"

	glua "github.com/yuin/gopher-lua"
)

// errorCopies is the number of copies of a long message while it is raised.
const errorCopies = 3

// Throw raises a string unchanged: it must not be used as a format.
func Throw(l *glua.LState, text glua.LString) { l.Error(text, 0) }

// reserver is the part of the guard for long messages.
type reserver interface {
	Killed() bool
	Reserve(l *glua.LState, n int)
}

// Raisef raises a message preceded by the position of the caller, unless the caller is a function
// in Go.
func Raisef(l *glua.LState, format string, args ...any) {
	for _, arg := range args {
		if text, ok := arg.(string); ok && len(text) > 4096 {
			if g, ok := l.Context().(reserver); ok && !g.Killed() {
				g.Reserve(l, errorCopies*len(text))
			}
		}
	}
	l.Error(glua.LString(Where(l, 1)+fmt.Sprintf(format, args...)), 0)
}

// Where returns the position of a function on the stack as the beginning of a message.
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
