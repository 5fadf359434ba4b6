package lua

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// argError raises for an argument in the words of Lua.
func argError(l *glua.LState, i int, message string) {
	name := "?"
	if frame, ok := l.GetStack(0); ok {
		if _, err := l.GetInfo("n", frame, glua.LNil); err == nil && frame.Name != "" && frame.Name[0] != '(' {
			name = frame.Name
		}
	}
	raisef(l, "bad argument #%d to '%s' (%s)", i, name, message)
}

func typeError(l *glua.LState, i int, expected string) {
	argError(l, i, expected+" expected, got "+typeName(l, i))
}

// typeName is the type of an argument, which may be missing.
func typeName(l *glua.LState, i int) string {
	if i > l.GetTop() {
		return "no value"
	}
	return nameOf(l.Get(i))
}

// nameOf is the name of a value's type.
func nameOf(v glua.LValue) string { return v.Type().String() }

// checkAny returns an argument that may be nil but not missing.
func checkAny(l *glua.LState, i int) glua.LValue {
	if i > l.GetTop() {
		argError(l, i, "value expected")
	}
	return l.Get(i)
}

func checkTable(l *glua.LState, i int) *glua.LTable {
	t, ok := l.Get(i).(*glua.LTable)
	if !ok {
		typeError(l, i, "table")
	}
	return t
}

func checkFunction(l *glua.LState, i int) *glua.LFunction {
	f, ok := l.Get(i).(*glua.LFunction)
	if !ok {
		typeError(l, i, "function")
	}
	return f
}

func checkThread(l *glua.LState, i int) *glua.LState {
	thread, ok := l.Get(i).(*glua.LState)
	if !ok {
		argError(l, i, "coroutine expected")
	}
	return thread
}

// checkNumber is luaL_checknumber: strings that spell numbers pass.
func checkNumber(l *glua.LState, i int) float64 {
	if n, ok := l.Get(i).(glua.LNumber); ok {
		return float64(n)
	}
	f, ok := value.ToNumber(l.Get(i))
	if !ok {
		typeError(l, i, "number")
	}
	return f
}

func checkInt(l *glua.LState, i int) int64 { return value.Truncate(checkNumber(l, i)) }

func optInt(l *glua.LState, i int, otherwise int64) int64 {
	if l.Get(i) == glua.LNil {
		return otherwise
	}
	return checkInt(l, i)
}

// checkText is luaL_checklstring: numbers pass as they are spelled.
func checkText(l *glua.LState, i int) string {
	if s, ok := l.Get(i).(glua.LString); ok {
		return string(s)
	}
	s, ok := value.Text(l.Get(i))
	if !ok {
		typeError(l, i, "string")
	}
	return s
}

func optText(l *glua.LState, i int, otherwise string) string {
	if l.Get(i) == glua.LNil {
		return otherwise
	}
	return checkText(l, i)
}
