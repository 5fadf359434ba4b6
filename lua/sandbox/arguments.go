package sandbox

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// ArgError raises an error about argument i with the text of Lua, "bad argument #i to 'function'
// (message)".
func ArgError(l *glua.LState, i int, message string) {
	name := "?"
	if frame, ok := l.GetStack(0); ok {
		if _, err := l.GetInfo("n", frame, glua.LNil); err == nil && frame.Name != "" && frame.Name[0] != '(' {
			name = frame.Name
		}
	}
	Raisef(l, "bad argument #%d to '%s' (%s)", i, name, message)
}

func typeError(l *glua.LState, i int, expected string) {
	ArgError(l, i, expected+" expected, got "+typeName(l, i))
}

// typeName returns the name of the type of argument i, or "no value" if the argument is missing.
func typeName(l *glua.LState, i int) string {
	if i > l.GetTop() {
		return "no value"
	}
	return NameOf(l.Get(i))
}

// NameOf returns the name of the type of v, such as "table".
func NameOf(v glua.LValue) string { return v.Type().String() }

// CheckAny returns argument i, which may be nil. It raises an error if the argument is missing.
func CheckAny(l *glua.LState, i int) glua.LValue {
	if i > l.GetTop() {
		ArgError(l, i, "value expected")
	}
	return l.Get(i)
}

// CheckTable returns argument i. It raises an error if the argument is not a table.
func CheckTable(l *glua.LState, i int) *glua.LTable {
	t, ok := l.Get(i).(*glua.LTable)
	if !ok {
		typeError(l, i, "table")
	}
	return t
}

// CheckFunction returns argument i. It raises an error if the argument is not a function.
func CheckFunction(l *glua.LState, i int) *glua.LFunction {
	f, ok := l.Get(i).(*glua.LFunction)
	if !ok {
		typeError(l, i, "function")
	}
	return f
}

// CheckThread returns argument i. It raises an error if the argument is not a coroutine.
func CheckThread(l *glua.LState, i int) *glua.LState {
	thread, ok := l.Get(i).(*glua.LState)
	if !ok {
		ArgError(l, i, "coroutine expected")
	}
	return thread
}

// CheckNumber returns argument i, which must be a number or a string that Lua converts to a number.
// It raises an error for any other value. It corresponds to luaL_checknumber of Lua.
func CheckNumber(l *glua.LState, i int) float64 {
	if n, ok := l.Get(i).(glua.LNumber); ok {
		return float64(n)
	}
	f, ok := value.ToNumber(l.Get(i))
	if !ok {
		typeError(l, i, "number")
	}
	return f
}

// CheckInt returns argument i like CheckNumber, truncated to an integer as in C.
func CheckInt(l *glua.LState, i int) int64 { return value.Truncate(CheckNumber(l, i)) }

// OptInt returns argument i like CheckInt, or otherwise if the argument is nil or missing.
func OptInt(l *glua.LState, i int, otherwise int64) int64 {
	if l.Get(i) == glua.LNil {
		return otherwise
	}
	return CheckInt(l, i)
}

// CheckText returns argument i, which is a string or a number, as a string. It raises an error for
// any other value. It corresponds to luaL_checklstring of Lua.
func CheckText(l *glua.LState, i int) string {
	if s, ok := l.Get(i).(glua.LString); ok {
		return string(s)
	}
	s, ok := value.Text(l.Get(i))
	if !ok {
		typeError(l, i, "string")
	}
	return s
}

// OptText returns argument i like CheckText, or otherwise if the argument is nil or missing.
func OptText(l *glua.LState, i int, otherwise string) string {
	if l.Get(i) == glua.LNil {
		return otherwise
	}
	return CheckText(l, i)
}
