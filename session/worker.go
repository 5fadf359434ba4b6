package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Worker is the state of a goroutine that feeds sessions: its handle of the store, its buffers
// and its part of the statistics. Only one goroutine at a time may use it.
type Worker struct {
	command.Worker
	input
	worldState
	effectState
	tally

	keys   env.Keys // the store, for prefetching keys; nil if it has no keys
	flight *flight  // the commands of the batch that wait for decisions; nil without a Remote
	ctx    command.Call
	out    resp.Writer
}

// input has the commands that were split off the input and have not all run yet, and memory for
// their arguments.
type input struct {
	room     [][]byte // memory for the arguments of requests
	slots    [command.MaxRequests]request
	requests []request // the commands that were split off, in the used part of slots
	// derivedKeys has the bytes of the derived keys of requests, until the batch ends.
	derivedKeys []byte
}

// request is a command that was split off the input and looked up, but has not run yet. Several
// commands are split off at a time, so that the store can prefetch the entries of all their keys
// at once, instead of waiting for each entry in turn.
type request struct {
	cmd  *command.Command // the command; nil if no such command exists
	args [][]byte
	size int // length of the command in bytes
	// refused is the error if the command was discarded while it arrived, "" otherwise. A
	// discarded command has no arguments.
	refused resp.Error
	end     int // offset in the input at which the command ends
	// derivedKey is the value for command.Call.DerivedKey. It points into the worker's
	// derivedKeys.
	derivedKey []byte
}

// worldState has the state of scripts and other calls that may take long: see coroutine.
type worldState struct {
	world           env.World // the store, which goroutines can stop; nil if the store has no keys
	coroutine       *coroutine
	pinned          bool // whether the feeding goroutine is locked to its thread
	stopped         bool // whether this worker has stopped the world, for the rest of its batch
	coroutineEffect bool // whether the call on the coroutine had an effect
}

// A coroutine runs a call of unknown duration, with its own worker. An event loop with such a
// call stops the world and switches to the coroutine. Switching costs no more than a function
// call and wakes no goroutine. Usually the call ends soon, and the loop continues. If the call
// takes long, it yields: the coroutine, its worker and the stopped world move to a goroutine that
// finishes the call, the session is parked, and the loop continues. The world has to be stopped
// first, because otherwise another session in the store could wait for a lock of the call
// forever.
type coroutine struct {
	worker *Worker
	resume func() (over, ok bool)
	stop   func()

	// These fields describe the current call. words are copies of its arguments. They point into
	// text, which is reused.
	how    *command.Coroutine
	arg    any
	cmd    *command.Command
	text   []byte
	words  [][]byte
	broken bool
}

// effectState records which replies have to wait until their effects are persisted.
type effectState struct {
	effects  uint64         // the number of journal records that have been counted
	pending  []durableReply // the replies of this batch that have to wait
	answered uint64         // the journal position for which replies of parked commands, and messages, wait
}

// durableReply is the range of a reply in the output. Its command had an effect.
type durableReply struct{ from, to int }

// tally counts the commands and errors of one worker.
type tally struct {
	// runCmd is the command of the last runLen calls, which are not in counts yet. They are added
	// together, so that a pipeline of equal commands costs one atomic addition.
	runCmd *command.Command
	runLen int64
	counts []stats.Counter // the counters of each command; the index is the ID of the command
	// called is the number of calls of this batch that are not in caller yet. caller is the
	// counter of by, the user whose calls were counted last.
	called int64
	by     *acl.User
	caller *atomic.Int64
	clock
	// errors is the number of errors that the writers of this worker have written. errorsSeen is
	// the value of errors when the running command began.
	errors, errorsSeen int64
}

// clock has the state that decides which calls of a worker are timed.
type clock struct {
	sample int    // the number of calls until the next one that is timed
	paces  []pace // the pace of each command; the index is the ID of the command
	pace   pace   // the pace of the running command
	exact  bool   // whether each of the commands that were split off together is timed
	noted  bool   // whether a call of the group was logged as slow
	ran    int    // the number of commands of the group that have begun
	// groupBegan is the clock reading at the beginning of the group, 0 if the group is not timed.
	// last is the last clock reading since.
	groupBegan, last time.Duration
}

// flight has the asks and replies of one batch, on a server with a Remote. It is filled while the
// batch runs, and submitted once at the end. The session is parked once. When all asks are
// decided, the replies are written in order. Until then the flight keeps the replies of commands
// that do not ask.
type flight struct {
	slots []slot
	asks  []*decide.Ask // the asks of all slots, in order; the asks from index used on are unused
	used  int
	added int    // the number of asks that belong to slots
	text  []byte // the bytes that the asks refer to
	local []byte // the replies between the slots, set at the end of the batch

	from     int               // the offset at which the replies begin in the writer of the batch
	together bool              // whether all asks come from one EXEC: an argument of [env.Remote].Submit
	silent   bool              // whether CLIENT REPLY suppresses the replies
	reply    command.ReplyMode // the reply mode before the last command
	postpone bool              // whether the command that was about to run is left out of the batch

	// left counts the users of the flight that are not done with it yet: launch and the Remote.
	left atomic.Int32
	wait *command.Wait
	done func() // the method value f.landed, which is made only once
}

// slot is a command whose reply depends on asks.
type slot struct {
	cmd   *command.Command
	ask   *decide.Ask
	at    int // the offset in local before which the reply is inserted
	proto int
	// calls is the number of calls that the command represents if it is timed, 0 if it is not
	// timed. took is the time that the command took to create its asks.
	calls int64
	took  time.Duration
}

// workers has all workers and coroutines, and lists of the idle ones.
type workers struct {
	workersMu                  sync.Mutex
	countedSince               limit.Instant // the instant of the last reset of the statistics; guarded by workersMu
	paces                      []pace        // the pace of each command: see pacesOf
	everyWorker                []*Worker     // all workers; never shrinks; guarded by workersMu
	idleWorkers                []*Worker     // idle workers of background goroutines; guarded by workersMu
	coroutines, everyCoroutine []*coroutine  // the idle coroutines, and all coroutines; guarded by workersMu
}

func workerOf(x *command.Worker) *Worker { return x.Owner.(*Worker) }
