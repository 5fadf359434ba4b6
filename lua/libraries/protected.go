package libraries

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// pcall implements pcall as Redis changes it: if the error is a table whose field err is a string
// or number, pcall returns that field instead of the table.
func (r *Runtime) pcall(l *glua.LState) int {
	if l.GetTop() == 0 || !callable(l, l.Get(1)) {
		l.Push(glua.LFalse)
		l.Push(glua.LString("attempt to call a " + l.Get(1).Type().String() + " value"))
		return 2
	}
	if err := r.Protect(l, l.GetTop()-1, glua.MultRet, sandbox.ProtectedCall{}); err != nil {
		return r.pushFailure(l, err)
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

// xpcall implements xpcall. As in Lua 5.1, it passes no arguments to the function.
func (r *Runtime) xpcall(l *glua.LState) int {
	sandbox.CheckAny(l, 2)
	handler, ok := l.Get(2).(*glua.LFunction)
	if !ok || !callable(l, l.Get(1)) {
		l.Push(glua.LFalse)
		l.Push(glua.LString("attempt to call a " + l.Get(1).Type().String() + " value"))
		return 2
	}
	top := l.GetTop()
	l.Push(l.Get(1))
	if err := r.Protect(l, 0, glua.MultRet, sandbox.ProtectedCall{Handler: handler}); err != nil {
		r.Guard.Stop(l)
		l.Push(glua.LFalse)
		if r.Unhandled {
			l.Push(glua.LString("error in error handling"))
		} else {
			l.Push(sandbox.ObjectOf(err))
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

func (r *Runtime) pushFailure(l *glua.LState, err error) int {
	r.Guard.Stop(l)
	value := sandbox.ObjectOf(err)
	if table, ok := value.(*glua.LTable); ok {
		if text := table.RawGetString("err"); text.Type() == glua.LTString || text.Type() == glua.LTNumber {
			value = text
		}
	}
	l.Push(glua.LFalse)
	l.Push(value)
	return 2
}

// raise implements the function error. It puts the position in front of a text unless the level is
// 0.
func (r *Runtime) raise(l *glua.LState) int {
	level := int(sandbox.OptInt(l, 2, 1))
	v := l.Get(1)
	if text, ok := value.Text(v); ok && level > 0 {
		r.Guard.Announce(l, len(text))
		v = glua.LString(sandbox.Where(l, level) + text)
	}
	if text, ok := v.(glua.LString); ok {
		sandbox.Throw(l, text)
		return 0
	}
	l.Error(v, 0)
	return 0
}
