package lua

import "github.com/cellserver/cellserver/lua/sandbox"

// Limits bounds one execution of a script. See [sandbox.Limits].
type Limits = sandbox.Limits

// DefaultLimits returns the limits that apply without other settings: 256 MiB of memory, strings of
// 16 MiB, 20 million steps of pattern matching and 1,000 coroutines. Room and FreeGarbage are nil.
func DefaultLimits() Limits {
	return Limits{Memory: 256 << 20, Strings: 16 << 20, PatternSteps: 20_000_000, Coroutines: 1000}
}
