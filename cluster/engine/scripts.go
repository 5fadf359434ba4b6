package engine

import _ "embed" // the scripts

// The scripts that the engine runs. They know no algorithm: one compares and sets a key, the other
// several keys of one slot.
var (
	//go:embed swap.lua
	swapScript string
	//go:embed swapall.lua
	swapAllScript string
)
