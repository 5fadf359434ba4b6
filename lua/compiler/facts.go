package compiler

// facts is what the text of a script proves.
type facts struct {
	bounded bool
	// known says that calls has all that it may call.
	known bool
	// byArguments says that it is bounded only with few arguments, since it has
	// loops over them.
	byArguments bool
	calls       []Call
	// plainKeys says that KEYS and ARGV are only read, at constant places.
	plainKeys bool
}

const (
	// maxBoundedNodes bounds the work of a bounded script, in nodes of its syntax,
	// each counted as often as the loops around it run.
	maxBoundedNodes = 4000
	// maxBoundedArguments is how many keys and arguments a script may have whose
	// loops run over them, and is called bounded.
	maxBoundedArguments = 32
	// anyKey stands for an element of KEYS whose index is not known.
	anyKey = -1
	// maxBoundedParts is how many operands of ".." a bounded script may have:
	// each can double a string.
	maxBoundedParts = 24
)

// Call is one redis.call or redis.pcall of a script whose calls are known.
type Call struct {
	// Name is the name of the command as it is written in the script.
	Name string
	// Keys says for each argument after the name which element of KEYS it is,
	// counted from 1; -1 is one of which the text does not say which. 0 is anything
	// else.
	Keys []int
}
