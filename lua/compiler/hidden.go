package compiler

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// These are the names of functions that rewritten code calls. The functions must be among the
// globals of the state that runs the code. A script cannot name them, because no identifier may
// contain the character of hiddenPrefix.
const (
	hiddenPrefix = "\x00"
	// NameConcat is the name of a function that joins its arguments as ".." does.
	NameConcat = hiddenPrefix + "concat"
	// NameForBound is the name of a function that converts a bound of a for loop to a number.
	NameForBound = hiddenPrefix + "number"
	// NameModulo is the name of a function for the operator "%", NameLength of one for "#".
	NameModulo = hiddenPrefix + "modulo"
	NameLength = hiddenPrefix + "length"
	// NameJoin is the name of a function that appends tables to its first argument, a table. The
	// second argument is the number of elements of the first. After them come pairs: a table, and
	// the number of its elements to append, or -1 if its keys have to be kept.
	NameJoin = hiddenPrefix + "join"
	// NameValue is the name of a function that returns its argument.
	NameValue = hiddenPrefix + "value"
	// NameGlobals is the name of the table _G. It is not a function.
	NameGlobals = hiddenPrefix + "globals"
	// NameCommand, NameForward and NameIgnore are prefixes. With "call" or "pcall" after them they
	// are the names of functions that do the same as redis.call and redis.pcall. NameForward is for
	// a call whose reply the script returns unchanged, NameIgnore for one whose reply the script
	// does not use, and NameCommand for all others.
	NameCommand = hiddenPrefix + "command."
	NameForward = hiddenPrefix + "forward."
	NameIgnore  = hiddenPrefix + "ignore."
)

// Hidden reports whether key names a global that only rewritten code uses. Scripts must not see
// such globals.
func Hidden(key glua.LValue) bool {
	s, ok := key.(glua.LString)
	return ok && strings.HasPrefix(string(s), hiddenPrefix)
}
