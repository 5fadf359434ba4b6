package compiler

// facts are properties that the source of a script proves.
type facts struct {
	bounded bool
	// known says that calls has all commands that the script may call.
	known bool
	// byArguments says that the script is bounded only for few arguments, since it has loops over
	// them.
	byArguments bool
	calls       []Call
	// plainKeys says that KEYS and ARGV are only read, with constant indices.
	plainKeys bool
}

const (
	// maxBoundedNodes bounds the work of a bounded script, in nodes of its syntax tree, each
	// counted as often as the loops around it run.
	maxBoundedNodes = 4000
	// maxBoundedArguments is the maximum number of keys and arguments for which a script with loops
	// over them is bounded.
	maxBoundedArguments = 32
	// anyKey stands for an element of KEYS with an unknown index.
	anyKey = -1
	// maxBoundedParts is the maximum number of operands of ".." in a bounded script: each can
	// double a string.
	maxBoundedParts = 24
)

// Call is one redis.call or redis.pcall of a script whose calls are known.
type Call struct {
	// Name is the name of the command as written in the script.
	Name string
	// Keys has, for each argument after the name, the index of the element of KEYS that it is,
	// counted from 1; -1 for an unknown element of KEYS, and 0 for anything else.
	Keys []int
}
