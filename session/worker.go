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

// Worker is the scratch of one feeding goroutine: its handle of the store, its
// buffers and its share of the statistics. It is used by one goroutine at a time.
type Worker struct {
	command.Worker
	input
	worldState
	effectState
	tally

	flight *flight // what is being asked; nil where the store decides
	ctx    command.Call
	w      resp.Writer
}

// input is the commands that have been split off ahead.
type input struct {
	room     [][]byte // room for the arguments of ahead
	slots    [command.MaxRequests]request
	requests []request // those of slots that are in use
	// policyKeys has the keys of requests that are about policies, until the batch ends.
	policyKeys []byte
}

// request is a command that has been split off the input and looked up, but has not
// run yet. Splitting a few at a time lets the store bring the memory of all their
// keys closer at once, instead of waiting for each in turn.
type request struct {
	cmd  *command.Command // nil if there is no such command
	args [][]byte
	size int // bytes of the command
	// refused is why the command was thrown away as it came; it has no arguments then.
	refused resp.Error
	end     int // bytes of the input that are done with once it has run
	// policyKey is command.Call.PolicyKey. It is in the worker's policyKeys.
	policyKey []byte
}

// worldState is for scripts that may take long; see coroutine.
type worldState struct {
	coroutine       *coroutine
	pinned          bool // who feeds holds its thread
	stopped         bool // the world is stopped by this worker, for the rest of its batch
	coroutineEffect bool // what ran on the coroutine had an effect
}

// A coroutine runs a call of unknown duration, with a worker of its own. A
// loop that has such a call stops the world, switches to the coroutine, which costs no more
// than a call does and wakes nobody, and is back when the call is over. If it takes long,
// the loop is back before: then the coroutine, the worker and the stopped world go to a
// goroutine that ends it, the session is parked, and the loop goes on. To stop the world
// first is what makes that possible: whoever was let in could wait for a lock of the call's
// for ever.
type coroutine struct {
	worker *Worker
	resume func() (over, ok bool)
	stop   func()

	// Of one call; the words are copies, in memory that is used again.
	how    *command.Coroutine
	arg    any
	cmd    *command.Command
	text   []byte
	words  [][]byte
	broken bool
}

// effectState is which replies have to wait for their effects.
type effectState struct {
	effects  uint64         // records seen so far
	pending  []durableReply // of this batch
	answered uint64         // the position that a parked command's reply waits for
}

// durableReply is a reply whose command had an effect.
type durableReply struct{ from, to int }

// tally counts the commands and errors of one worker.
type tally struct {
	// The run of equal commands that is not yet in counts, so that a pipeline of
	// one command costs one atomic addition.
	runCmd *command.Command
	runLen int64
	counts []stats.Counter // by command id
	// called is how many calls of this batch are not yet in caller, the count of the user by,
	// which is the last that was counted.
	called int64
	by     *acl.User
	caller *atomic.Int64
	clock
	// How many errors the writers of this worker have written, and how many of them had
	// been when the running command began.
	errors, errorsSeen int64
}

// clock is which calls of a worker are timed.
type clock struct {
	sample int    // calls until the next timed one
	paces  []pace // by command id
	pace   pace   // of the running command
	exact  bool   // of the commands that have been split: each is timed
	noted  bool   // a call was more than a number since the group of commands began
	ran    int    // commands of the group that have begun
	// groupBegan is the reading at which the group of commands began, 0 without a group that
	// is timed. last is the last reading since.
	groupBegan, last time.Duration
}

// flight is what the commands of a batch have asked, where a Remote decides, and what they
// reply. It is gathered while the batch runs, submitted once, and the session is parked once.
// When all is decided the replies are written in order. What commands reply by themselves
// in between waits in the flight.
type flight struct {
	slots []slot
	asks  []*decide.Ask // of all slots, in order; those beyond used are empty
	used  int
	added int    // how many of these belong to slots
	text  []byte // what asks refer to
	local []byte // what is replied between the slots, once the batch is over

	from     int               // where the replies begin in the writer of the batch
	together bool              // one EXEC has asked for all
	silent   bool              // CLIENT REPLY wants no reply
	reply    command.ReplyMode // as the last command found it
	postpone bool              // the batch ends before the command that was about to run

	// left is who has yet to be done with it: the one who submits, and the Remote.
	left atomic.Int32
	wait *command.Wait
	done func() // is landed
}

// slot is a command that has asked.
type slot struct {
	cmd   *command.Command
	ask   *decide.Ask
	at    int // where its reply comes in local
	proto int
	// calls is for how many calls it stands if it is timed, 0 if it is not, and took how long
	// it took to ask.
	calls int64
	took  time.Duration
}

// workers are all workers, and those that are free.
type workers struct {
	workersMu                  sync.Mutex
	countedSince               limit.Instant // guarded by workersMu: when counting began
	paces                      []pace        // by command id: of which a sample is timed
	everyWorker                []*Worker     // guarded by workersMu; never shrinks
	idleWorkers                []*Worker     // guarded by workersMu: workers of Offload that are free
	coroutines, everyCoroutine []*coroutine  // guarded by workersMu: those that are free, and all
}

// workerOf returns the worker that a command knows as x.
func workerOf(x *command.Worker) *Worker { return x.Owner.(*Worker) }
