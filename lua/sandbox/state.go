package sandbox

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// State is a state of the interpreter under a guard, and what makes it one that scripts of
// strangers can have: nothing leads out of it, it has globals that cannot be changed, and
// no error goes past it. It belongs to one goroutine at a time.
type State struct {
	Guard Guard
	// L is the interpreter's state.
	L *glua.LState
	// Globals is the table that functions look their globals up in. It is never handed
	// out.
	Globals *glua.LTable
	views
	calls
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

// Open makes the state, whose globals are empty but for _G, which is a view of them that
// refuses to be written; assignments to globals are rewritten to ones to that.
func (s *State) Open(m *Memory) {
	s.Guard = newGuard(m)
	s.L = glua.NewState(glua.Options{
		CallStackSize: callStackSize, RegistrySize: registrySize,
		RegistryMaxSize: registryMaxSize, RegistryGrowStep: registryStep,
		SkipOpenLibs: true,
	})
	s.views = views{l: s.L, behind: map[*glua.LTable]*glua.LTable{}}
	s.calls = calls{guard: &s.Guard}
	s.onError = s.L.NewFunction(s.caught)
	s.Globals = s.L.G.Global
	meta := s.L.NewTable()
	meta.RawSetString("__index", s.L.NewFunction(func(l *glua.LState) int {
		Raisef(l, "Script attempted to access nonexistent global variable '%s'", glua.LVAsString(l.Get(2)))
		return 0
	}))
	s.Globals.Metatable = meta
	s.Globals.RawSetString("_G", s.ReadOnly(s.Globals))
	s.L.SetContext(&s.Guard)
}

// Begin readies the state for another script.
func (s *State) Begin() {
	s.Guard.begin()
	s.Failure = Failure{}
}

// End forgets what a script has left.
func (s *State) End() {
	s.L.SetTop(0)
	s.Guard.end()
	s.Failure = Failure{}
}

// Clean says that another script may run in this state: that nobody was killed, nothing
// overflowed and little memory was taken.
func (s *State) Clean() bool {
	return !s.dirty && !s.Guard.Killed() && s.Guard.usage.own <= LeastMemory
}

// Close ends the state.
func (s *State) Close() {
	s.Guard.usage.take(0)
	s.L.Close()
}

// Add makes a library of functions a global that cannot be changed, and returns the table of it.
func (s *State) Add(name string, functions map[string]glua.LGFunction) *glua.LTable {
	t := s.Table(functions)
	s.Globals.RawSetString(name, s.ReadOnly(t))
	return t
}

// Table makes a table of functions.
func (s *State) Table(functions map[string]glua.LGFunction) *glua.LTable {
	t := s.L.CreateTable(0, len(functions))
	for name, f := range functions {
		t.RawSetString(name, s.L.NewFunction(f))
	}
	return t
}
