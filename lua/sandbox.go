package lua

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// State is a state of the interpreter under a guard, and what makes it one that scripts of
// strangers can have: nothing leads out of it, it has globals that cannot be changed, and
// no error goes past it. It belongs to one goroutine at a time.
type State struct {
	guard guard
	l     *glua.LState
	// globals is the table that functions look their globals up in. It is never handed
	// out.
	globals *glua.LTable
	// readonly has the tables behind views that refuse to be written.
	readonly map[*glua.LTable]*glua.LTable
	// dirty says that the state is not to be used again.
	dirty   bool
	onError *glua.LFunction
	marks   []mark
	// unhandled says that the handler of the last protected call failed itself.
	unhandled bool
	failure   failure
}

const (
	callStackSize   = 200
	registrySize    = 1024
	registryMaxSize = 1 << 16
	registryStep    = 4096
)

// The interpreter has this for all states. It is set before there is one.
var _ = func() bool {
	glua.MaxArrayIndex = value.ArrayMax
	return true
}()

// openState makes the state, whose globals are empty but for _G, which is a view of them that
// refuses to be written; assignments to globals are rewritten to ones to that.
func (s *State) openState(m *memory) {
	s.guard = newGuard(m)
	s.l = glua.NewState(glua.Options{
		CallStackSize: callStackSize, RegistrySize: registrySize,
		RegistryMaxSize: registryMaxSize, RegistryGrowStep: registryStep,
		SkipOpenLibs: true,
	})
	s.readonly = map[*glua.LTable]*glua.LTable{}
	s.onError = s.l.NewFunction(s.caught)
	s.globals = s.l.G.Global
	meta := s.l.NewTable()
	meta.RawSetString("__index", s.l.NewFunction(func(l *glua.LState) int {
		raisef(l, "Script attempted to access nonexistent global variable '%s'", glua.LVAsString(l.Get(2)))
		return 0
	}))
	s.globals.Metatable = meta
	s.globals.RawSetString("_G", s.protected(s.globals))
	s.l.SetContext(&s.guard)
}

// beginState readies the state for another script.
func (s *State) beginState() {
	s.guard.begin()
	s.failure = failure{}
}

// endState forgets what a script has left.
func (s *State) endState() {
	s.l.SetTop(0)
	s.guard.end()
	s.failure = failure{}
}

// clean says that another script may run in this state: that nobody was killed, nothing
// overflowed and little memory was taken.
func (s *State) clean() bool {
	return !s.dirty && !s.guard.isKilled() && s.guard.usage.own <= leastMemory
}

func (s *State) closeState() {
	s.guard.usage.take(0)
	s.l.Close()
}

// add makes a library of functions a global that cannot be changed, and returns the table of it.
func (s *State) add(name string, functions map[string]glua.LGFunction) *glua.LTable {
	t := s.table(functions)
	s.globals.RawSetString(name, s.protected(t))
	return t
}
