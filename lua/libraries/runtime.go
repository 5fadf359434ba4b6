package libraries

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
)

// Runtime has the libraries of a state, except that of redis, and their data for one execution.
type Runtime struct {
	*sandbox.State

	// For the lifetime of the state.
	//
	// stringMeta is the table that getmetatable returns as the strings' metatable.
	stringMeta   *glua.LTable
	ipairsStep   *glua.LFunction
	nextFunction *glua.LFunction
	nullValue    *glua.LUserData

	// For one execution.
	//
	// yielded is the number of values of the last yield.
	yielded int
	threads map[*glua.LState]*glua.LFunction
	random  random
	json    jsonSettings
}

// Begin prepares the libraries for another script.
func (r *Runtime) Begin() { r.random.restart() }

// End discards what a script has set and made.
func (r *Runtime) End() {
	r.json = jsonSettings{}
	if len(r.threads) > 0 {
		clear(r.threads)
	}
}
