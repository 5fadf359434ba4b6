package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Worker is the state of one feeding goroutine: its handle of the store, its buffers and its part
// of the statistics. Only one goroutine at a time may use it.
type Worker struct {
	command.Worker
	input
	worldState
	effectState
	tally

	flight *flight // the asks of the batch; nil without a Remote
	ctx    command.Call
	out    resp.Writer
}

// input has the commands that were split off ahead.
type input struct {
	room     [][]byte // room for the arguments of requests
	slots    [command.MaxRequests]request
	requests []request // the used part of slots
	// derivedKeys has the derived keys of requests, until the batch ends.
	derivedKeys []byte
}

// request is a command that was split off the input and looked up, but has not run yet. Splitting
// several at a time lets the store prefetch the memory of all their keys at once, instead of
// waiting for each in turn.
type request struct {
	cmd  *command.Command // nil if there is no such command
	args [][]byte
	size int // length of the command in bytes
	// refused is the error if the command was discarded while it arrived. It has no arguments then.
	refused resp.Error
	end     int // bytes of the input that are consumed after it has run
	// derivedKey is command.Call.DerivedKey. It points into the worker's derivedKeys.
	derivedKey []byte
}

// worldState is for scripts that may take long; see coroutine.
type worldState struct {
	coroutine       *coroutine
	pinned          bool // the feeding goroutine is locked to its thread
	stopped         bool // this worker has stopped the world, for the rest of its batch
	coroutineEffect bool // the call on the coroutine had an effect
}

// A coroutine runs a call of unknown duration, with its own worker. An event loop with such a call
// stops the world and switches to the coroutine, which costs no more than a function call and wakes
// no goroutine, and continues when the call is over. If the call takes long, the loop continues
// before: the coroutine, the worker and the stopped world move to a goroutine that finishes the
// call, and the session is parked. The world has to be stopped first: otherwise another session in
// the store could wait for a lock of the call forever.
type coroutine struct {
	worker *Worker
	resume func() (over, ok bool)
	stop   func()

	// The fields of one call. words are copies in text, which is reused.
	how    *command.Coroutine
	arg    any
	cmd    *command.Command
	text   []byte
	words  [][]byte
	broken bool
}

// effectState says which replies have to wait for their effects.
type effectState struct {
	effects  uint64         // records counted so far
	pending  []durableReply // of this batch
	answered uint64         // the position that the reply of a parked command waits for
}

// durableReply is a reply whose command had an effect.
type durableReply struct{ from, to int }

// tally counts the commands and errors of one worker.
type tally struct {
	// The run of equal commands that is not in counts yet, so that a pipeline of one command costs
	// one atomic addition.
	runCmd *command.Command
	runLen int64
	counts []stats.Counter // by command id
	// called is how many calls of this batch are not in caller yet. caller is the counter of the
	// user by, the last one that was counted.
	called int64
	by     *acl.User
	caller *atomic.Int64
	clock
	// How many errors the writers of this worker have written, and how many of them before the
	// running command began.
	errors, errorsSeen int64
}

// clock says which calls of a worker are timed.
type clock struct {
	sample int    // calls until the next timed one
	paces  []pace // by command id
	pace   pace   // of the running command
	exact  bool   // each of the commands that were split together is timed
	noted  bool   // a call was logged as slow since the group began
	ran    int    // commands of the group that have begun
	// groupBegan is the clock reading at the beginning of the group, 0 without a group that is
	// timed. last is the last reading since.
	groupBegan, last time.Duration
}

// flight has the asks and replies of a batch for a Remote. It is filled while the batch runs,
// submitted once, and the session is parked once. When all asks are decided the replies are written
// in order. Replies of commands that do not ask are kept in the flight until then.
type flight struct {
	slots []slot
	asks  []*decide.Ask // of all slots, in order; those from used on are unused
	used  int
	added int    // how many of these belong to slots
	text  []byte // the bytes that asks refer to
	local []byte // the replies between the slots, set at the end of the batch

	from     int               // where the replies begin in the writer of the batch
	together bool              // one EXEC has made all asks
	silent   bool              // CLIENT REPLY suppresses the reply
	reply    command.ReplyMode // the mode before the last command
	postpone bool              // the batch ends before the command that was about to run

	// left counts the users of the flight that are not done with it: launch, and the Remote.
	left atomic.Int32
	wait *command.Wait
	done func() // the method value of landed
}

// slot is a command that has asked.
type slot struct {
	cmd   *command.Command
	ask   *decide.Ask
	at    int // where its reply comes in local
	proto int
	// calls is how many calls it represents if it is timed, 0 if it is not. took is how long it
	// took to ask.
	calls int64
	took  time.Duration
}

// workers has all workers, and the idle ones.
type workers struct {
	workersMu                  sync.Mutex
	countedSince               limit.Instant // guarded by workersMu: when the statistics were reset
	paces                      []pace        // by command id: see pacesOf
	everyWorker                []*Worker     // guarded by workersMu; never shrinks
	idleWorkers                []*Worker     // guarded by workersMu: idle workers of background goroutines
	coroutines, everyCoroutine []*coroutine  // guarded by workersMu: idle ones, and all
}

// workerOf returns the session's part of a worker.
func workerOf(x *command.Worker) *Worker { return x.Owner.(*Worker) }
