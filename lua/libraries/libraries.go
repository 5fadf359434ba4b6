package libraries

import (
	"math"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
)

// Open sets all functions and constants of the libraries in the globals of s, and makes r use s
// from now on.
func (r *Runtime) Open(s *sandbox.State) {
	r.State = s
	r.threads = map[*glua.LState]*glua.LFunction{}
	l := r.L
	r.ipairsStep = l.NewFunction(r.ipairsNext)
	r.nextFunction = l.NewFunction(r.next)
	r.openOperators()
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
}
