package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/stats"
)

// input is the commands that have been split off ahead.
type input struct {
	args  [][]byte // room for the arguments of ahead
	slots [command.AheadMost]ahead
	ahead []ahead // those of slots that are in use
}

// gateState is for scripts that may take long; see coroutine.
type gateState struct {
	coroutine       *coroutine
	pinned          bool // who feeds holds its thread
	gated           bool // the gate is closed by this lane, for the rest of its batch
	coroutineEffect bool // what ran on the coroutine had an effect
}

// effectState is which replies have to wait for their effects.
type effectState struct {
	effects  uint64        // records seen so far
	owed     []effectReply // of this batch
	answered uint64        // the position that a parked command's reply waits for
}

// tally counts the commands and errors of one lane.
type tally struct {
	// The run of equal commands that is not yet in counts, so that a pipeline of
	// one command costs one atomic addition.
	runCmd *command.Command
	runLen int64
	sample int             // commands until the next timed one
	counts []stats.Counter // by command id
	// How many errors the writers of this lane have written, and how many of them had
	// been when the running command began.
	errors, errorsSeen int64
}
