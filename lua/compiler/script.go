package compiler

import glua "github.com/yuin/gopher-lua"

// Script is a compiled script. It does not change and may be used by any number
// of runs at once.
type Script struct {
	sha    string
	source []byte
	proto  *glua.FunctionProto
	flags  Flags
	facts  facts
}

// SHA returns the SHA-1 of the source in 40 lower-case hexadecimal digits.
func (s *Script) SHA() string { return s.sha }

// Source returns the text. It must not be changed.
func (s *Script) Source() []byte { return s.source }

// Flags returns what the script's first line declares.
func (s *Script) Flags() Flags { return s.flags }

// Bounded says that the script ends quickly by construction when it is called
// with so many keys and arguments: it has no function, no loop but those that run a
// few times, by a constant or by the number of its arguments, and calls nothing but
// redis.* and library functions of small cost. How long its commands take is another
// matter.
func (s *Script) Bounded(arguments int) bool {
	return s.facts.bounded && (!s.facts.byArguments || arguments <= maxBoundedArguments)
}

// Calls lists the calls of the script in the order of its text, if every command that it
// may call is known from that: it is then bounded, or would be with fewer arguments. If in
// every one of them each position that the command takes for a key is an element of KEYS,
// the script can touch nothing but its KEYS.
func (s *Script) Calls() (calls []Call, known bool) { return s.facts.calls, s.facts.known }

// Proto returns the compiled main function.
func (s *Script) Proto() *glua.FunctionProto { return s.proto }

// PlainKeys says that KEYS and ARGV are only read, at constant places, so that their
// tables can be used again by the next run.
func (s *Script) PlainKeys() bool { return s.facts.plainKeys }
