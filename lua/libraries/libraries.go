package libraries

import (
	"math"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
)

// Runtime is the libraries of a state but that of redis, and what they keep for one execution.
type Runtime struct {
	*sandbox.State

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

// Open fills the globals of s.
func (r *Runtime) Open(s *sandbox.State) {
	r.State = s
	r.threads = map[*glua.LState]*glua.LFunction{}
	l := r.L
	r.ipairsStep = l.NewFunction(r.ipairsNext)
	r.nextFunction = l.NewFunction(r.next)
	r.openBase()
	r.openString()
	r.Add("table", r.tableLibrary())
	r.Add("coroutine", r.coroutineLibrary())
	r.Add("bit", r.bitLibrary())
	r.Add("struct", r.structLibrary())
	lib := r.Add("math", r.mathLibrary())
	lib.RawSetString("pi", glua.LNumber(math.Pi))
	lib.RawSetString("huge", glua.LNumber(math.Inf(1)))
	json := r.Add("cjson", r.jsonLibrary())
	json.RawSetString("_NAME", glua.LString("cjson"))
	json.RawSetString("_VERSION", glua.LString("2.1.0"))
	r.nullValue = l.NewUserData()
	json.RawSetString("null", r.nullValue)
	pack := r.Add("cmsgpack", r.msgpackLibrary())
	pack.RawSetString("_NAME", glua.LString("cmsgpack"))
	pack.RawSetString("_VERSION", glua.LString("lua-cmsgpack 0.4.0"))
	pack.RawSetString("_COPYRIGHT", glua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	pack.RawSetString("_DESCRIPTION", glua.LString("MessagePack C implementation for Lua"))
	r.Globals.RawSetString(compiler.NameGlobals, r.Globals.RawGetString("_G"))
}

// Begin readies the libraries for another script.
func (r *Runtime) Begin() { r.random.seed(0) }

// End forgets what a script has set and made.
func (r *Runtime) End() {
	r.json = jsonSettings{}
	if len(r.threads) > 0 {
		clear(r.threads)
	}
}
