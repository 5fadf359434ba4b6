package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/resp"
)

// writeError writes the error that ended a script, or that it returned as t. One that
// bears the mark of a command has been counted as that command's.
func writeError(w *resp.Writer, e resp.Error, t *glua.LTable) {
	if t != nil && get(t, "ignore_error_stats_update") == glua.LTrue {
		w.ErrorFrom(e, resp.Repeated)
		return
	}
	w.ErrorFrom(e, resp.OfScript)
}

// get is a field as the script would see it, without metamethods.
func get(t *glua.LTable, name string) glua.LValue { return t.RawGetString(name) }

// commandError is the error that a command answered; Redis marks it as counted.
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

// errorText makes sure that an error begins with a code, as Redis does.
func errorText(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if !strings.Contains(text, " ") {
		return "ERR " + text
	}
	return text
}
