package sandbox

import (
	"fmt"

	glua "github.com/yuin/gopher-lua"
)

// errorCopies is the number of copies of a long message that exist while it is raised.
const errorCopies = 3

// Throw raises text unchanged. Use it instead of Raisef for a text that must not be interpreted as
// a format.
func Throw(l *glua.LState, text glua.LString) { l.Error(text, 0) }

// reserver is the part of Guard that Raisef uses for long messages. Raisef gets it from the context
// of the state.
type reserver interface {
	Killed() bool
	Reserve(l *glua.LState, n int)
}

// Raisef raises an error whose message is preceded by the position of the caller in the script. If
// the caller is a function in Go, the message has no position. Raisef reserves memory for long
// arguments.
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

// Where returns the position of the function at the given level of the stack, as the beginning of a
// message: "source:line: ". It returns "" if the position is unknown.
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
