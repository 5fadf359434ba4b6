package command

// Coroutine is how a group runs a call of which nobody knows how long it takes: on a
// coroutine with a worker of its own, which goes on elsewhere if it takes long.
type Coroutine struct {
	// Do runs the call. c is of the coroutine's worker, with copies of the words. arg is what
	// RunOnCoroutine was given, and valid until c yields.
	Do func(c *Call, arg any)
	// Script is what runs, and whether it has written. It is asked once the call has yielded.
	Script func(w *Worker) (script Killable, wrote bool)
	// Again returns what runs the call that Do has run from its beginning.
	Again func(c *Call) func(c *Call)
}
