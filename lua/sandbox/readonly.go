package sandbox

import glua "github.com/yuin/gopher-lua"

const errReadonly = "Attempt to modify a readonly table"

// Table makes a table of functions.
func (s *State) Table(functions map[string]glua.LGFunction) *glua.LTable {
	t := s.L.CreateTable(0, len(functions))
	for name, f := range functions {
		t.RawSetString(name, s.L.NewFunction(f))
	}
	return t
}

// ReadOnly returns an empty table that reads from t and refuses to be written.
// Nothing but the metatable stands between, so every function of ours that goes
// past metatables asks original first.
func (s *State) ReadOnly(t *glua.LTable) *glua.LTable {
	l := s.L
	view := l.CreateTable(0, 0)
	meta := l.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", l.NewFunction(func(l *glua.LState) int {
		Raisef(l, errReadonly)
		return 0
	}))
	view.Metatable = meta
	s.readonly[view] = t
	return view
}

// Original returns the table behind a view, or t itself.
func (s *State) Original(t *glua.LTable) *glua.LTable {
	if t.Metatable == glua.LNil {
		return t
	}
	if behind, ok := s.readonly[t]; ok {
		return behind
	}
	return t
}

// IsReadOnly says that t is a view.
func (s *State) IsReadOnly(t *glua.LTable) bool {
	_, ok := s.readonly[t]
	return ok
}

// Writable raises for a table that a script may not change.
func (s *State) Writable(l *glua.LState, t *glua.LTable) *glua.LTable {
	if t.Metatable != glua.LNil {
		if s.IsReadOnly(t) {
			s.Throw(l, errReadonly)
		}
	}
	return t
}
