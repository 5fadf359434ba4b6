package sandbox

import (
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// State is a state of the interpreter for untrusted scripts. A guard bounds its time and memory, it
// gives no access to the outside, its globals cannot be changed by scripts, and it recovers from
// all errors. It belongs to one goroutine at a time.
type State struct {
	Guard Guard
	// L is the main state of the interpreter. Coroutines have states of their own.
	L *glua.LState
	// Globals is the table in which functions look up globals. Scripts never get this table, but a
	// view of it, _G.
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

// The variable MaxArrayIndex of the interpreter applies to all states. It must be set before the
// first state is made.
var _ = func() bool {
	glua.MaxArrayIndex = value.ArrayMax
	return true
}()

// Open makes the state, with memory counted by m. Its only global is _G, a read-only view of the
// globals. The compiler rewrites an assignment to a global to an assignment to _G, which raises an
// error. Reading a global that does not exist raises an error, too.
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

// End drops the script's values from the stack, and ends the count of its memory.
func (s *State) End() {
	s.L.SetTop(0)
	s.Guard.end()
	s.Failure = Failure{}
}

// Clean reports whether another script may run in this state. It is false if the script was killed,
// if the interpreter failed or its stack overflowed, or if more than LeastMemory was allocated.
func (s *State) Clean() bool {
	return !s.dirty && !s.Guard.Killed() && s.Guard.usage.own <= LeastMemory
}

// Close closes the state, which must not be used afterwards.
func (s *State) Close() {
	s.Guard.usage.take(0)
	s.L.Close()
}

// Add adds a library as a global called name, which is a view that scripts cannot change. It
// returns the table behind the view, so that the caller can add constants.
func (s *State) Add(name string, functions map[string]glua.LGFunction) *glua.LTable {
	t := s.Table(functions)
	s.Globals.RawSetString(name, s.ReadOnly(t))
	return t
}

// Table returns a new table of the given functions.
func (s *State) Table(functions map[string]glua.LGFunction) *glua.LTable {
	t := s.L.CreateTable(0, len(functions))
	for name, f := range functions {
		t.RawSetString(name, s.L.NewFunction(f))
	}
	return t
}
