package sandbox

// Limits bounds one execution of a script. A script that exceeds Memory is ended with an error that
// it cannot catch. It can catch the errors of Strings, Coroutines and PatternSteps like any other
// error, but when it has used up PatternSteps, all further matching fails at once.
type Limits struct {
	// Memory is the maximum number of bytes of reachable objects of a script. The count is
	// approximate: a script that has made garbage may be ended when it has half of Memory. Scripts
	// of a pool start a garbage collection when together they have allocated half of Memory since
	// the last one.
	Memory int64
	// Room returns bound, the maximum number of bytes of objects in the heap of the process, and
	// kept, the part of them that scripts do not use, such as keys. A script may add to kept. If
	// Room is nil, there is no maximum. Any goroutine may call Room.
	Room func() (bound, kept int64)
	// FreeGarbage, if it is not nil, is called at the end of a script that has allocated 16 MiB or
	// more, most of which is garbage by then. It must not block.
	FreeGarbage func()
	// Strings is the maximum length in bytes of a string that a script builds.
	Strings int
	// PatternSteps is the maximum number of steps of all pattern matching in a script together.
	PatternSteps int64
	// Coroutines is the maximum number of coroutines that a script may create.
	Coroutines int
}
