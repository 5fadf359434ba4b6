package libraries

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
)

// Runtime has the libraries of a state, except for "redis", and their data for one execution. It
// belongs to one goroutine at a time.
type Runtime struct {
	*sandbox.State

	// These fields are for the lifetime of the state.
	//
	// stringMeta is the table that getmetatable returns for a string.
	stringMeta   *glua.LTable
	ipairsStep   *glua.LFunction
	nextFunction *glua.LFunction
	nullValue    *glua.LUserData

	// These fields are for one execution.
	//
	// yielded is the number of values of the last yield.
	yielded int
	threads map[*glua.LState]*glua.LFunction
	random  random
	json    jsonSettings
}

// Begin prepares the libraries for another script. The script gets its own sequence of random
// numbers.
func (r *Runtime) Begin() { r.random.restart() }

// End discards the settings and coroutines of a script.
func (r *Runtime) End() {
	r.json = jsonSettings{}
	if len(r.threads) > 0 {
		clear(r.threads)
	}
}
