package compiler

// Call is one redis.call or redis.pcall of a confined script.
type Call struct {
	// Name is the name of the command as it is written in the script.
	Name string
	// Keys says for each argument after the name which element of KEYS it is,
	// counted from 1; -1 is one of which the text does not say which. 0 is anything
	// else.
	Keys []int
}
