package sandbox

// Limits bounds one execution. Exceeding one ends the script with an error that it cannot catch,
// except for the first error of Strings, Coroutines and PatternSteps, which it can catch as any
// other.
type Limits struct {
	// Memory is the number of bytes of reachable objects that a script may have. A script may be
	// ended at half of it, if it has allocated as much again before. All scripts of a pool together
	// may have that much, and half as much in garbage.
	Memory int64
	// Room returns the maximum number of bytes of objects in the process's heap, and how many of
	// them are used by others than scripts, such as keys, to which a script may add. nil means no
	// maximum. Any goroutine may call it.
	Room func() (bound, kept int64)
	// FreeGarbage, if it is not nil, is called after a script that has allocated many megabytes,
	// most of which are garbage now. It must not block.
	FreeGarbage func()
	// Strings is the maximum length in bytes of a string that a script builds.
	Strings int
	// PatternSteps is the maximum number of steps of all pattern matching of a script.
	PatternSteps int64
	// Coroutines is the maximum number of coroutines that a script may create.
	Coroutines int
}
