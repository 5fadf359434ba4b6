package compiler

import glua "github.com/yuin/gopher-lua"

// Script is a compiled script. It does not change, and any number of runs may use it at the same
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

// Source returns the source, which must not be changed.
func (s *Script) Source() []byte { return s.source }

// Flags returns the flags in the script's first line.
func (s *Script) Flags() Flags { return s.flags }

// Bounded reports whether the script certainly ends quickly when it is called with that many keys
// and arguments: it has no function, only loops that run a few times, by a constant or by the
// number of arguments, and calls only redis.* and cheap library functions. The duration of its
// commands is not considered.
func (s *Script) Bounded(arguments int) bool {
	return s.facts.bounded && (!s.facts.byArguments || arguments <= maxBoundedArguments)
}

// Calls lists the calls of the script in the order of its source, if all commands that it may call
// are known: then it is bounded, or would be with fewer arguments. If in every call each argument
// that the command uses as a key is an element of KEYS, the script uses no other keys.
func (s *Script) Calls() (calls []Call, known bool) { return s.facts.calls, s.facts.known }

// Proto returns the compiled main function.
func (s *Script) Proto() *glua.FunctionProto { return s.proto }

// PlainKeys reports whether KEYS and ARGV are only read, with constant indices, so that the next
// run can reuse their tables.
func (s *Script) PlainKeys() bool { return s.facts.plainKeys }
