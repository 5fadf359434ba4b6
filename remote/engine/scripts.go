package engine

import _ "embed" // the scripts

// These are the scripts that the engine runs. They do not depend on the kind of limiter. swapScript
// compares and sets one key, and swapAllScript several keys of one slot.
var (
	//go:embed swap.lua
	swapScript string
	//go:embed swapall.lua
	swapAllScript string
)
