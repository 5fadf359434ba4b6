package command

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/budget"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// What keeps commands from running, as a set: [Engine].halts.
const (
	HaltLoading uint32 = 1 << iota // those without FlagLoading are refused
	HaltChanges                    // those that may change something are postponed
	HaltAll                        // all are postponed
	HaltServing                    // none: somebody waits for elements, see [Ctx.runFeeding]

	HaltPaused = HaltChanges | HaltAll
)

// HoldExpiry has keys that expire stay where they are for the time of a pause, as in Redis:
// nobody finds them, but nothing is removed. It is called with the pause locked.
func (e *Server) HoldExpiry(hold bool) {
	if f := e.Opts.HoldExpiry; f != nil {
		f(hold)
	}
}

// OrForgo is for behindPause: begin, or close the client of a command that never will.
func (p *Wait) OrForgo(begin func()) func(goOn bool) {
	return func(goOn bool) {
		if goOn {
			begin()
		} else {
			p.Finish(func(*resp.Writer) { p.Broken = true })
		}
	}
}

// RedisVersion is the version that clients are told. Several decide by it what
// they may send: below 7.2 no CLIENT SETINFO, from 7.4 on commands that we do not have.
const RedisVersion = "7.2.7"

// WriteModules lists redis-cell, by which applications detect CL.THROTTLE.
func WriteModules(w *resp.Writer) {
	w.Array(1)
	w.Map(4)
	w.BulkString("name")
	w.BulkString("redis-cell")
	w.BulkString("ver")
	w.Int(1)
	w.BulkString("path")
	w.BulkString("")
	w.BulkString("args")
	w.Array(0)
}

// Options are what an Engine needs of the world around it. All but
// Process, Stop, ScriptRoom, FreeHeap and Log must be set.
type Options struct {
	// NewStore returns a view of the store for one lane.
	NewStore func() Store
	// Ledger counts values that have left the store while replies refer to them. Without
	// one replies are copies.
	Ledger shared.Ledger
	// Stopwatch is a monotonic reading, for measuring how long a command took. It
	// decides nothing.
	Stopwatch func() time.Duration
	// Now reads the store's clock, for the ages of clients.
	Now func() limit.Instant
	// Settings is the configuration that CONFIG shows and changes.
	Settings Settings
	// Process is what INFO says of the process; nil leaves those fields out.
	Process Process
	// ObserveExpiry has an observer told of what expires without anybody's doing; nil
	// tells nobody.
	ObserveExpiry func(Observer)
	// HoldExpiry keeps keys that have expired from being removed, or lets them go again;
	// nil if there is nothing to hold. Any goroutine may call it.
	HoldExpiry func(hold bool)
	// Persistence keeps effects; nil keeps nothing.
	Persistence Persistence
	// Stop ends the server; SHUTDOWN calls it.
	Stop func(StopMode)
	// ScriptRoom says how many bytes of objects Go's heap may have while scripts run, and
	// how many of them are kept for keys; nil stands for any number.
	ScriptRoom func() (bound, kept int64)
	// FreeHeap gives what is garbage in Go's heap back to the system; nil does nothing.
	FreeHeap func()
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
}

// Table is the command table, from which documentation is generated.
func (e *Server) Table() *Table { return e.Commands }

// SetLoading says that the state is not there yet, or that it is from now on.
// Meanwhile only commands are run that are flagged so.
func (e *Server) SetLoading(loading bool) {
	if loading {
		e.Halts.Or(HaltLoading)
	} else {
		e.Halts.And(^HaltLoading)
	}
}

// Loading reports whether the state is yet to come.
func (e *Server) Loading() bool { return e.Halts.Load()&HaltLoading != 0 }

// Server is what all sessions share and commands may know.
type Server struct {
	Host     Host
	Opts     Options
	Commands *Table
	Log      *slog.Logger
	Bounds   atomic.Pointer[Limits]
	Draining atomic.Bool   // set by Drain
	Halts    atomic.Uint32 // what keeps commands from running: see HaltLoading
	Ended    atomic.Bool   // set by Close: slow commands may give up
	Large    budget.Budget // what long replies take
	hooks    hooks
	states   [maxGroups]any // of the groups: see Slot
}

// StopMode says whether a server that stops writes a snapshot first.
type StopMode uint8

const (
	// StopAsConfigured writes one if there are save points and no log.
	StopAsConfigured StopMode = iota
	// StopSaving writes one.
	StopSaving
	// StopWithoutSaving writes none.
	StopWithoutSaving
)
