package compiler

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Functions that rewritten code calls, which have to be among the globals of whoever runs
// it. A script cannot name them: no identifier has such a character.
const (
	hiddenPrefix = "\x00"
	// NameConcat joins its arguments as ".." does.
	NameConcat = hiddenPrefix + "concat"
	// NameForBound makes a number of the bound of a loop.
	NameForBound = hiddenPrefix + "number"
	// NameModulo is "%", NameLength "#".
	NameModulo = hiddenPrefix + "modulo"
	NameLength = hiddenPrefix + "length"
	// NameJoin adds tables to the first, which has as many elements as the second argument
	// says. Behind each table stands how many elements of it are put behind those that are
	// there, or -1 if its numbers are keys to be kept.
	NameJoin = hiddenPrefix + "join"
	// NameValue returns its argument.
	NameValue = hiddenPrefix + "value"
	// NameGlobals is no function but _G.
	NameGlobals = hiddenPrefix + "globals"
	// NameCommand, NameForward and NameIgnore stand in front of call and pcall where these
	// are certainly those of redis: NameForward where the script returns the reply as it
	// is, NameIgnore where it does not use the reply.
	NameCommand = hiddenPrefix + "command."
	NameForward = hiddenPrefix + "forward."
	NameIgnore  = hiddenPrefix + "ignore."
)

// Hidden says that a global is one of ours.
func Hidden(key glua.LValue) bool {
	s, ok := key.(glua.LString)
	return ok && strings.HasPrefix(string(s), hiddenPrefix)
}
