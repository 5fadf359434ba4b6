package compiler

import glua "github.com/yuin/gopher-lua"

// Script is a compiled script. It never changes, and any number of runs may use it at the same
// time.
type Script struct {
	sha    string
	source []byte
	proto  *glua.FunctionProto
	flags  Flags
	facts  facts
}

// SHA returns the SHA-1 of the source in 40 lower-case hexadecimal digits.
func (s *Script) SHA() string { return s.sha }

// Source returns the source. The caller must not change it.
func (s *Script) Source() []byte { return s.source }

// Flags returns the flags in the first line of the script.
func (s *Script) Flags() Flags { return s.flags }

// Bounded reports whether the script certainly ends quickly if it is called with few keys and
// arguments; arguments is their number together. A bounded script defines no functions, calls only
// redis.call, redis.pcall and cheap functions of the libraries, and has only loops that run a few
// times, by a constant or by the number of keys or arguments. The duration of the commands that it
// calls is not considered.
func (s *Script) Bounded(arguments int) bool {
	return s.facts.bounded && (!s.facts.byArguments || arguments <= maxBoundedArguments)
}

// Calls returns the calls of redis.call and redis.pcall in the script, in the order of its source.
// known is true if all commands that the script may call are known; otherwise calls is nil. A
// script whose calls are known is bounded, at least for few arguments; see Bounded. If in every
// call each argument that the command uses as a key is an element of KEYS, the script uses no other
// keys.
func (s *Script) Calls() (calls []Call, known bool) { return s.facts.calls, s.facts.known }

// Proto returns the compiled main function. The caller must not change it.
func (s *Script) Proto() *glua.FunctionProto { return s.proto }

// PlainKeys reports whether the script only reads KEYS and ARGV, and uses neither of them as a
// value. The next run can reuse the tables then.
func (s *Script) PlainKeys() bool { return s.facts.plainKeys }
