package sandbox

import (
	"fmt"

	glua "github.com/yuin/gopher-lua"
)

// errorCopies is how many times a long message is in memory while it is raised.
const errorCopies = 3

// Throw raises a string as it is: not every string is a format.
func Throw(l *glua.LState, text glua.LString) { l.Error(text, 0) }

// reserver is the guard as far as a long message needs it.
type reserver interface {
	Killed() bool
	Reserve(l *glua.LState, n int)
}

// Raisef raises a message with the place of the caller in front, which is none if
// that is a function of ours.
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
