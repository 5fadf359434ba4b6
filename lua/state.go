package lua

import (
	"math"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
)

const errReadonly = "Attempt to modify a readonly table"

// open fills the globals. The table that functions look their globals up in is
// never handed out: assignments to it are rewritten, and _G is a view of it that
// refuses them. So is every library.
func (r *Run) open() {
	l := r.state
	r.globals = l.G.Global
	r.openBase()
	r.openString()
	r.ipairsStep = l.NewFunction(r.ipairsNext)
	r.nextFunction = l.NewFunction(r.next)
	for name, functions := range map[string]map[string]glua.LGFunction{
		"table":     r.tableLibrary(),
		"math":      r.mathLibrary(),
		"coroutine": r.coroutineLibrary(),
		"redis":     r.redisLibrary(),
		"bit":       r.bitLibrary(),
		"struct":    r.structLibrary(),
		"cmsgpack":  r.msgpackLibrary(),
		"cjson":     r.jsonLibrary(),
	} {
		r.globals.RawSetString(name, r.protected(r.table(functions)))
	}
	r.constants()
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *glua.LState) int {
		raisef(l, "Script attempted to access nonexistent global variable '%s'", glua.LVAsString(l.Get(2)))
		return 0
	}))
	r.globals.Metatable = meta
	view := r.protected(r.globals)
	r.globals.RawSetString("_G", view)
	r.globals.RawSetString(compiler.NameGlobals, view)
}

// table makes a table of functions.
func (r *Run) table(functions map[string]glua.LGFunction) *glua.LTable {
	t := r.state.CreateTable(0, len(functions))
	for name, f := range functions {
		t.RawSetString(name, r.state.NewFunction(f))
	}
	return t
}

// protected returns an empty table that reads from t and refuses to be written.
// Nothing but the metatable stands between, so every function of ours that goes
// past metatables asks original first.
func (r *Run) protected(t *glua.LTable) *glua.LTable {
	l := r.state
	view := l.CreateTable(0, 0)
	meta := l.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", l.NewFunction(func(l *glua.LState) int {
		raisef(l, errReadonly)
		return 0
	}))
	view.Metatable = meta
	r.readonly[view] = t
	return view
}

// original returns the table behind a view, or t itself.
func (r *Run) original(t *glua.LTable) *glua.LTable {
	if t.Metatable == glua.LNil {
		return t
	}
	if behind, ok := r.readonly[t]; ok {
		return behind
	}
	return t
}

// writable raises for a table that a script may not change.
func (r *Run) writable(l *glua.LState, t *glua.LTable) *glua.LTable {
	if t.Metatable != glua.LNil {
		if _, ok := r.readonly[t]; ok {
			r.throw(l, errReadonly)
		}
	}
	return t
}

// library returns the table of a library behind its view.
func (r *Run) library(name string) *glua.LTable {
	view, _ := r.globals.RawGetString(name).(*glua.LTable)
	return r.original(view)
}

// constants adds what is no function.
func (r *Run) constants() {
	l := r.state
	redis := r.library("redis")
	for name, n := range redisConstants {
		redis.RawSetString(name, glua.LNumber(n))
	}
	redis.RawSetString("REDIS_VERSION", glua.LString(redisVersion))
	lib := r.library("math")
	lib.RawSetString("pi", glua.LNumber(math.Pi))
	lib.RawSetString("huge", glua.LNumber(math.Inf(1)))
	json := r.library("cjson")
	json.RawSetString("_NAME", glua.LString("cjson"))
	json.RawSetString("_VERSION", glua.LString("2.1.0"))
	r.nullValue = l.NewUserData()
	json.RawSetString("null", r.nullValue)
	pack := r.library("cmsgpack")
	pack.RawSetString("_NAME", glua.LString("cmsgpack"))
	pack.RawSetString("_VERSION", glua.LString("lua-cmsgpack 0.4.0"))
	pack.RawSetString("_COPYRIGHT", glua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	pack.RawSetString("_DESCRIPTION", glua.LString("MessagePack C implementation for Lua"))
}
