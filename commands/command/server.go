package command

import (
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// What keeps commands from running, as a set: Server.Halts.
const (
	HaltLoading    uint32 = 1 << iota // those without FlagLoading are refused
	HaltChanges                       // those that may change something are postponed
	HaltAll                           // all are postponed
	HaltServing                       // none: somebody waits for elements, whom commands serve
	HaltMonitor                       // none: somebody monitors, who is sent all
	HaltReadOnly                      // those that change something are refused: this is a replica
	HaltNoReplicas                    // likewise, while too few replicas would have the change
	HaltMasterDown                    // those without FlagStale are refused: the replica has lost its primary

	HaltPaused = HaltChanges | HaltAll
	// HaltStandby are those of a node that replicates.
	HaltStandby = HaltReadOnly | HaltNoReplicas | HaltMasterDown
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

// SetHalt sets one of the halts, or takes it away. Any goroutine may call it.
func (s *Server) SetHalt(halt uint32, on bool) {
	if on {
		s.Halts.Or(halt)
	} else {
		s.Halts.And(^halt)
	}
}

// Node is the server as a part of replication. Without one it is a primary for ever.
func (s *Server) Node() env.Node {
	if s.Options.Node == nil {
		return env.Standalone{RunID: s.Process().RunID()}
	}
	return s.Options.Node
}

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
