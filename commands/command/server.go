package command

import (
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/resp"
)

// What keeps commands from running, as a set: Server.Halts.
const (
	HaltLoading uint32 = 1 << iota // those without FlagLoading are refused
	HaltChanges                    // those that may change something are postponed
	HaltAll                        // all are postponed
	HaltServing                    // none: somebody waits for elements, whom commands serve
	HaltMonitor                    // none: somebody monitors, who is sent all

	HaltPaused = HaltChanges | HaltAll
)

// Limits returns the limits in force.
func (s *Server) Limits() *env.Limits { return s.ActiveLimits.Load() }

// SuspendExpiry has keys that expire stay where they are for the time of a pause, as in Redis:
// nobody finds them, but nothing is removed. It is called with the pause locked.
func (s *Server) SuspendExpiry(hold bool) {
	if f := s.Options.SuspendExpiry; f != nil {
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
func (s *Server) Table() *Table { return s.Commands }

// SetLoading says that the state is not there yet, or that it is from now on.
// Meanwhile only commands are run that are flagged so.
func (s *Server) SetLoading(loading bool) {
	if loading {
		s.Halts.Or(HaltLoading)
	} else {
		s.Halts.And(^HaltLoading)
	}
}

// Loading reports whether the state is yet to come.
func (s *Server) Loading() bool { return s.Halts.Load()&HaltLoading != 0 }

// Process returns what INFO asks.
func (s *Server) Process() env.Process {
	if s.Options.Process == nil {
		return env.NoProcess{}
	}
	return s.Options.Process
}

// observe puts what is observed in force.
func (s *Server) observe(o *stats.Observing) {
	s.Slow.SetMax(o.SlowEntries)
	s.Events.SetThreshold(o.Latency)
}
