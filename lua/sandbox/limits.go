package sandbox

// Limits bounds one execution. All of them end the script with an error that it
// cannot catch, except Strings, Coroutines and PatternSteps, whose first error it
// can catch as any other.
type Limits struct {
	// Memory is how many bytes a script may be able to reach. At half of that it may be
	// told so, if it has allocated as much again before. All scripts of a pool together
	// keep to that and half as much in garbage.
	Memory int64
	// Room says how many bytes of objects the process's heap may have, and how many of
	// them are kept for others than scripts, such as keys, which a script may add to. nil
	// stands for any number. Any goroutine may call it.
	Room func() (bound, kept int64)
	// FreeGarbage, if it is not nil, is called when a script is over that has taken many
	// megabytes, most of which are garbage now. It must not block.
	FreeGarbage func()
	// Strings is the longest string that a script may build, in bytes.
	Strings int
	// PatternSteps is how many steps all pattern matching of a script may take.
	PatternSteps int64
	// Coroutines is how many of them a script may create.
	Coroutines int
}
