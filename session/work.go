package session

// This file is the one place that says how much a command may do on an event loop.
// Work is counted in units, of which about ten take a microsecond: a word of a command,
// an element that is looked at, or command.unitBytes bytes that are copied.
//
// What a command does is known at one of three times. Its words are there before it
// runs: [Lane.dispatch] asks wordsLeave. What it does to a collection is known once that
// is found: the handler asks [command.Ctx.Leaves] or [command.Ctx.Stay] before it changes anything.
// A transaction is the sum of its commands: EXEC asks transactionWork. Whatever would do
// more than command.LoopWork then runs beside the loops (beside.go), or in slices (slices.go).

const (
	// turnWork is how many units a turn may do before others have theirs.
	turnWork = 8 << 10
)
