package sandbox

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// ArgError raises an error about an argument with the text of Lua.
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

// typeName returns the type of an argument, which may be missing.
func typeName(l *glua.LState, i int) string {
	if i > l.GetTop() {
		return "no value"
	}
	return NameOf(l.Get(i))
}

// NameOf returns the name of a value's type.
func NameOf(v glua.LValue) string { return v.Type().String() }

// CheckAny returns an argument that may be nil but not missing.
func CheckAny(l *glua.LState, i int) glua.LValue {
	if i > l.GetTop() {
		ArgError(l, i, "value expected")
	}
	return l.Get(i)
}

// CheckTable returns an argument that has to be a table.
func CheckTable(l *glua.LState, i int) *glua.LTable {
	t, ok := l.Get(i).(*glua.LTable)
	if !ok {
		typeError(l, i, "table")
	}
	return t
}

// CheckFunction returns an argument that has to be a function.
func CheckFunction(l *glua.LState, i int) *glua.LFunction {
	f, ok := l.Get(i).(*glua.LFunction)
	if !ok {
		typeError(l, i, "function")
	}
	return f
}

// CheckThread returns an argument that has to be a coroutine.
func CheckThread(l *glua.LState, i int) *glua.LState {
	thread, ok := l.Get(i).(*glua.LState)
	if !ok {
		ArgError(l, i, "coroutine expected")
	}
	return thread
}

// CheckNumber is luaL_checknumber: it accepts strings that are numbers.
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

// CheckInt is CheckNumber truncated to an integer, as in C.
func CheckInt(l *glua.LState, i int) int64 { return value.Truncate(CheckNumber(l, i)) }

// OptInt is CheckInt for an argument that may be nil or missing.
func OptInt(l *glua.LState, i int, otherwise int64) int64 {
	if l.Get(i) == glua.LNil {
		return otherwise
	}
	return CheckInt(l, i)
}

// CheckText is luaL_checklstring: it converts numbers to strings.
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

// OptText is CheckText for an argument that may be nil or missing.
func OptText(l *glua.LState, i int, otherwise string) string {
	if l.Get(i) == glua.LNil {
		return otherwise
	}
	return CheckText(l, i)
}
