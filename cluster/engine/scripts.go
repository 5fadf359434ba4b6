package engine

import _ "embed" // the scripts

// The scripts that the engine runs. They do not depend on the kind of limiter: swapScript
// compares and sets one key, swapAllScript several keys of one slot.
var (
	//go:embed swap.lua
	swapScript string
	//go:embed swapall.lua
	swapAllScript string
)
