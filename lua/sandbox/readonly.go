package sandbox

import glua "github.com/yuin/gopher-lua"

// views has the read-only views of a state. A view is an empty table that reads from another table
// and refuses writes.
type views struct {
	l *glua.LState
	// behind has the original table of each view.
	behind map[*glua.LTable]*glua.LTable
}

const errReadonly = "Attempt to modify a readonly table"

// ReadOnly returns a view of t: an empty table that reads from t and refuses writes. Only the
// metatable of the view does that, so every function in Go that bypasses metatables must call
// Original first.
func (v *views) ReadOnly(t *glua.LTable) *glua.LTable {
	l := v.l
	view := l.CreateTable(0, 0)
	meta := l.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", l.NewFunction(func(l *glua.LState) int {
		Raisef(l, errReadonly)
		return 0
	}))
	view.Metatable = meta
	v.behind[view] = t
	return view
}

// Original returns the table behind t if t is a view, else t itself.
func (v *views) Original(t *glua.LTable) *glua.LTable {
	if t.Metatable == glua.LNil {
		return t
	}
	if behind, ok := v.behind[t]; ok {
		return behind
	}
	return t
}

// IsReadOnly reports whether t is a view.
func (v *views) IsReadOnly(t *glua.LTable) bool {
	_, ok := v.behind[t]
	return ok
}

// Writable returns t. It raises an error if t is a view, which scripts must not change.
func (v *views) Writable(l *glua.LState, t *glua.LTable) *glua.LTable {
	if t.Metatable != glua.LNil {
		if v.IsReadOnly(t) {
			l.Error(glua.LString(errReadonly), 0)
		}
	}
	return t
}
