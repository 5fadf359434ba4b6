package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/resp"
)

// writeError writes the error that ended a script, or that it returned as t. An error that is
// marked as a command's has been counted for that command.
func writeError(w *resp.Writer, e resp.Error, t *glua.LTable) {
	if t != nil && get(t, "ignore_error_stats_update") == glua.LTrue {
		w.ErrorFrom(e, resp.Repeated)
		return
	}
	w.ErrorFrom(e, resp.OfScript)
}

// get returns a field as the script would see it, without metamethods.
func get(t *glua.LTable, name string) glua.LValue { return t.RawGetString(name) }

// commandError returns the error that a command replied; Redis marks it as counted.
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

// errorText adds a code to an error that has none, as Redis does.
func errorText(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if !strings.Contains(text, " ") {
		return "ERR " + text
	}
	return text
}
