package lua

import (
	glua "github.com/yuin/gopher-lua"
)

const errReadonly = "Attempt to modify a readonly table"

// table makes a table of functions.
func (s *State) table(functions map[string]glua.LGFunction) *glua.LTable {
	t := s.l.CreateTable(0, len(functions))
	for name, f := range functions {
		t.RawSetString(name, s.l.NewFunction(f))
	}
	return t
}

// protected returns an empty table that reads from t and refuses to be written.
// Nothing but the metatable stands between, so every function of ours that goes
// past metatables asks original first.
func (s *State) protected(t *glua.LTable) *glua.LTable {
	l := s.l
	view := l.CreateTable(0, 0)
	meta := l.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", l.NewFunction(func(l *glua.LState) int {
		raisef(l, errReadonly)
		return 0
	}))
	view.Metatable = meta
	s.readonly[view] = t
	return view
}

// original returns the table behind a view, or t itself.
func (s *State) original(t *glua.LTable) *glua.LTable {
	if t.Metatable == glua.LNil {
		return t
	}
	if behind, ok := s.readonly[t]; ok {
		return behind
	}
	return t
}

// writable raises for a table that a script may not change.
func (s *State) writable(l *glua.LState, t *glua.LTable) *glua.LTable {
	if t.Metatable != glua.LNil {
		if _, ok := s.readonly[t]; ok {
			s.throw(l, errReadonly)
		}
	}
	return t
}
