package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/resp"
)

// writeError writes the error e, which ended a script, to w. t is the error as a table of the
// script, or nil if the error is not a table. An error of a command is marked in t and has been
// counted for that command; other errors are counted for the script.
func writeError(w *resp.Writer, e resp.Error, t *glua.LTable) {
	if t != nil && get(t, "ignore_error_stats_update") == glua.LTrue {
		w.ErrorFrom(e, resp.Repeated)
		return
	}
	w.ErrorFrom(e, resp.OfScript)
}

// get returns the field called name of t, without metamethods.
func get(t *glua.LTable, name string) glua.LValue { return t.RawGetString(name) }

// commandError returns, as a table of the script, the error that a command replied with text. Like
// Redis, it marks the error as counted already.
func commandError(l *glua.LState, text string) *glua.LTable {
	t := errorTable(l, errorText(text))
	t.RawSetString("ignore_error_stats_update", glua.LTrue)
	return t
}

func errorTable(l *glua.LState, text string) *glua.LTable {
	t := l.CreateTable(0, 2)
	t.RawSetString("err", glua.LString(text))
	return t
}

// errorText returns text without the line ends at its end. If text has no space, and so no error
// code, errorText puts "ERR " in front, as Redis does.
func errorText(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if !strings.Contains(text, " ") {
		return "ERR " + text
	}
	return text
}
