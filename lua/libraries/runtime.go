package libraries

import (
	glua "github.com/yuin/gopher-lua"

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

// Begin readies the libraries for another script.
func (r *Runtime) Begin() { r.random.restart() }

// End forgets what a script has set and made.
func (r *Runtime) End() {
	r.json = jsonSettings{}
	if len(r.threads) > 0 {
		clear(r.threads)
	}
}
