package compiler

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Functions that rewritten code calls. They must be among the globals of the state that runs it. A
// script cannot name them, because no identifier may contain the character of their prefix.
const (
	hiddenPrefix = "\x00"
	// NameConcat joins its arguments as ".." does.
	NameConcat = hiddenPrefix + "concat"
	// NameForBound converts the bound of a loop to a number.
	NameForBound = hiddenPrefix + "number"
	// NameModulo is "%", NameLength "#".
	NameModulo = hiddenPrefix + "modulo"
	NameLength = hiddenPrefix + "length"
	// NameJoin appends tables to the first one, which has as many elements as the second argument
	// says. Each table is followed by the number of its elements to append, or by -1 if its keys
	// have to be kept.
	NameJoin = hiddenPrefix + "join"
	// NameValue returns its argument.
	NameValue = hiddenPrefix + "value"
	// NameGlobals is not a function but _G.
	NameGlobals = hiddenPrefix + "globals"
	// NameCommand, NameForward and NameIgnore precede call and pcall where these are certainly
	// those of redis: NameForward if the script returns the reply unchanged, NameIgnore if it does
	// not use the reply.
	NameCommand = hiddenPrefix + "command."
	NameForward = hiddenPrefix + "forward."
	NameIgnore  = hiddenPrefix + "ignore."
)

// Hidden reports whether a global is one of these functions.
func Hidden(key glua.LValue) bool {
	s, ok := key.(glua.LString)
	return ok && strings.HasPrefix(string(s), hiddenPrefix)
}
