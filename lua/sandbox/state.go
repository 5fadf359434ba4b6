package sandbox

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// State is a state of the interpreter for untrusted scripts: it is bounded by a guard, gives no
// access to the outside, has globals that cannot be changed, and recovers from all errors. It
// belongs to one goroutine at a time.
type State struct {
	Guard Guard
	// L is the interpreter's state.
	L *glua.LState
	// Globals is the table in which functions look up globals. Scripts never get it.
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

// The interpreter has this setting for all states. It is set before the first one is made.
var _ = func() bool {
	glua.MaxArrayIndex = value.ArrayMax
	return true
}()

// Open makes the state. Its only global is _G, a read-only view of the globals; the compiler
// rewrites assignments to globals to assignments to _G.
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

// Begin prepares the state for another script.
func (s *State) Begin() {
	s.Guard.begin()
	s.Failure = Failure{}
}

// End discards the data of a script.
func (s *State) End() {
	s.L.SetTop(0)
	s.Guard.end()
	s.Failure = Failure{}
}

// Clean reports whether another script may run in this state: the script was not killed, nothing
// overflowed and little memory was allocated.
func (s *State) Clean() bool {
	return !s.dirty && !s.Guard.Killed() && s.Guard.usage.own <= LeastMemory
}

// Close closes the state.
func (s *State) Close() {
	s.Guard.usage.take(0)
	s.L.Close()
}

// Add adds a library of functions as a global that cannot be changed, and returns its table.
func (s *State) Add(name string, functions map[string]glua.LGFunction) *glua.LTable {
	t := s.Table(functions)
	s.Globals.RawSetString(name, s.ReadOnly(t))
	return t
}

// Table returns a table of functions.
func (s *State) Table(functions map[string]glua.LGFunction) *glua.LTable {
	t := s.L.CreateTable(0, len(functions))
	for name, f := range functions {
		t.RawSetString(name, s.L.NewFunction(f))
	}
	return t
}
