package command

import "github.com/cellserver/cellserver/resp"

// What keeps commands from running, as a set: [Engine].halts.
const (
	HaltLoading uint32 = 1 << iota // those without FlagLoading are refused
	HaltChanges                    // those that may change something are postponed
	HaltAll                        // all are postponed
	HaltServing                    // none: somebody waits for elements, see [Ctx.runServing]

	HaltPaused = HaltChanges | HaltAll
)

// Limits returns the limits in force.
func (e *Server) Limits() *Limits { return e.ActiveLimits.Load() }

func (e *Server) PasswordSet() bool { return e.Limits().Password != "" }

// SuspendExpiry has keys that expire stay where they are for the time of a pause, as in Redis:
// nobody finds them, but nothing is removed. It is called with the pause locked.
func (e *Server) SuspendExpiry(hold bool) {
	if f := e.Options.SuspendExpiry; f != nil {
		f(hold)
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

// Process returns what INFO asks.
func (e *Server) Process() Process {
	if e.Options.Process == nil {
		return noProcess{}
	}
	return e.Options.Process
}
