package compiler

// facts are properties that the source of a script proves. The zero value says nothing about the
// script.
type facts struct {
	bounded bool
	// known says that calls has all commands that the script may call.
	known bool
	// byArguments says that the script is bounded only for a call with few keys and arguments,
	// since it has loops over them.
	byArguments bool
	calls       []Call
	// plainKeys says that the script only reads KEYS and ARGV, and uses neither of them as a value.
	plainKeys bool
}

const (
	// maxBoundedNodes is the maximum work of a bounded script: the number of nodes of its syntax
	// tree, where a node in a loop counts once for each run of the loop.
	maxBoundedNodes = 4000
	// maxBoundedArguments is the maximum number of keys and arguments of a call for which a script
	// with loops over them is bounded.
	maxBoundedArguments = 32
	// anyKey is the index of an element of KEYS whose index is unknown.
	anyKey = -1
	// maxBoundedParts is the maximum number of operators ".." that a bounded script runs, since
	// each can double the length of a string.
	maxBoundedParts = 24
)

// Call is one redis.call or redis.pcall of a script all of whose calls are known. See
// [Script.Calls].
type Call struct {
	// Name is the name of the command as written in the script.
	Name string
	// Keys has an element for each argument after the name: n if the argument is KEYS[n], -1 if it
	// is an element of KEYS with an unknown index, and 0 if it is anything else.
	Keys []int
}
