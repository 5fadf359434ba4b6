package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/limit"
)

// totals counts clients and what became of them since the start.
type totals struct {
	rate        stats.Rate
	outbound    atomic.Int64  // bytes that wait in outboxes
	slowReaders atomic.Int64  // clients that were cut off for what they left unread
	kept        atomic.Int64  // bytes of transactions and watched keys
	evicted     atomic.Int64  // clients that were closed by maxmemory-clients
	sinceDecay  time.Duration // touched by Tick only
	received    atomic.Int64  // connections since the start
	refused     atomic.Int64
	errors      stats.Errors
	callers     stats.Callers
	panics      atomic.Int64
	resets      atomic.Int64 // two for each: when it begins, and when it has ended
}

// background is the goroutines in the background.
type background struct {
	slowMu    sync.Mutex
	slow      sync.WaitGroup // goroutines of Spawn
	closed    bool           // guarded by slowMu
	slowSlots chan struct{}
	slots     chan struct{} // of Background
	fileSlots chan struct{} // of Background, for commands that read or write files of options
	urgent    chan struct{} // of Background, for commands that do not wait for those of slots
}

// executions are the commands that run by Execute.
type executions struct {
	executing       sync.WaitGroup
	executionsMu    sync.Mutex
	cancels         map[int64]context.CancelCauseFunc // guarded by executionsMu: of those that run
	lastExecution   int64                             // guarded by executionsMu
	executionsEnded bool                              // guarded by executionsMu: no more begin
}

// exclusiveQueue runs exclusive commands, one after another.
type exclusiveQueue struct {
	busy atomic.Bool // the one that runs has been running for long

	mu      sync.Mutex
	idle    *sync.Cond           // on mu: current has become nil
	queue   []*command.Exclusive // guarded by mu
	running bool                 // guarded by mu: a goroutine serves the queue
	current *command.Exclusive   // guarded by mu
	began   time.Duration        // guarded by mu: when current did, by the stopwatch
	closed  bool                 // guarded by mu: the server ends, nothing may run for long
	aborted bool                 // guarded by mu: a script was ended half way for that
}

// pause is CLIENT PAUSE while it lasts. What it is for is in the halts that every
// command looks at anyway, and whom it keeps waiting is in their sessions: a postponed
// command is parked, with its bytes left where they are, and is run from its first byte
// when the pause is over. Somebody who waits so costs no timer and no goroutine.
//
// Replies, errors and what is postponed are those of Redis 7.0: a command that is
// malformed or not allowed is refused at once, CLIENT UNPAUSE is postponed by ALL as
// everything is, and a second pause makes the first neither shorter nor less strict.
type pause struct {
	mu     sync.Mutex
	until  limit.Instant // guarded by mu: 0 without a pause
	stop   func() bool   // guarded by mu: stops the timer of its end
	behind []func(bool)  // guarded by mu: what goes on then beside sessions, see AfterPause
	// handover says that a primary hands over to a replica, which keeps a pause from ending.
	handover bool // guarded by mu

	// One goroutine at a time lets go on, however often pauses end.
	released  []func(bool) // guarded by mu: that were behind a pause that is over
	releasing bool         // guarded by mu: the goroutine is there
	more      bool         // guarded by mu: a pause has ended since it began to look
}
