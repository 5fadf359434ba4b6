package lua

import (
	"math"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
)

// Runtime is the libraries of a state but that of redis, and what they keep for one execution.
type Runtime struct {
	*State

	// Of the state.
	//
	// stringMeta is what getmetatable shows of the strings' metatable.
	stringMeta   *glua.LTable
	ipairsStep   *glua.LFunction
	nextFunction *glua.LFunction
	nullValue    *glua.LUserData

	// Of one execution.
	//
	// yielded is how many values the last yield gave.
	yielded int
	threads map[*glua.LState]*glua.LFunction
	random  random
	json    jsonSettings
}

// openLibraries fills the globals of s.
func (r *Runtime) openLibraries(s *State) {
	r.State = s
	r.threads = map[*glua.LState]*glua.LFunction{}
	l := r.l
	r.ipairsStep = l.NewFunction(r.ipairsNext)
	r.nextFunction = l.NewFunction(r.next)
	r.openBase()
	r.openString()
	r.add("table", r.tableLibrary())
	r.add("coroutine", r.coroutineLibrary())
	r.add("bit", r.bitLibrary())
	r.add("struct", r.structLibrary())
	lib := r.add("math", r.mathLibrary())
	lib.RawSetString("pi", glua.LNumber(math.Pi))
	lib.RawSetString("huge", glua.LNumber(math.Inf(1)))
	json := r.add("cjson", r.jsonLibrary())
	json.RawSetString("_NAME", glua.LString("cjson"))
	json.RawSetString("_VERSION", glua.LString("2.1.0"))
	r.nullValue = l.NewUserData()
	json.RawSetString("null", r.nullValue)
	pack := r.add("cmsgpack", r.msgpackLibrary())
	pack.RawSetString("_NAME", glua.LString("cmsgpack"))
	pack.RawSetString("_VERSION", glua.LString("lua-cmsgpack 0.4.0"))
	pack.RawSetString("_COPYRIGHT", glua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	pack.RawSetString("_DESCRIPTION", glua.LString("MessagePack C implementation for Lua"))
	r.globals.RawSetString(compiler.NameGlobals, r.globals.RawGetString("_G"))
}

// beginLibraries readies the libraries for another script.
func (r *Runtime) beginLibraries() { r.random.seed(0) }

// endLibraries forgets what a script has set and made.
func (r *Runtime) endLibraries() {
	r.json = jsonSettings{}
	if len(r.threads) > 0 {
		clear(r.threads)
	}
}
