package command

import (
	"log/slog"
	"sync/atomic"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Server is the part of the server's state that all sessions share and commands may use.
type Server struct {
	Host         Host
	Options      env.Options
	Commands     *Table
	Log          *slog.Logger
	ActiveLimits atomic.Pointer[env.Limits]
	Users        *acl.Users
	Refusals     acl.Log // ACL LOG
	Changes      stats.Changes
	Figures      *figure.Registry // of the server and all its parts
	Seen         Seen             // nil without limiters
	// Logins limits guesses of passwords; nil without commands that log in.
	Logins Logins
	// ClientLine returns the line of CLIENT LIST for a client; nil without that command.
	ClientLine func(cl *Client, now limit.Instant) []byte
	Draining   atomic.Bool   // set by Drain
	Halts      atomic.Uint32 // the reasons that keep commands from running: see HaltLoading
	// Slow and Events record calls and events that took long: SLOWLOG and LATENCY.
	Slow   stats.SlowLog
	Events stats.Events
	Ended  atomic.Bool   // set by Close: slow commands may give up
	Large  budget.Budget // the memory of long replies
	hooks  hooks
	states [maxGroups]any // of the groups: see Slot
}

// The reasons that keep commands from running, as a bit set: Server.Halts.
const (
	HaltLoading    uint32 = 1 << iota // commands without FlagLoading are refused
	HaltChanges                       // commands that may change something are delayed
	HaltAll                           // all commands are delayed
	HaltServing                       // stops no command: clients wait for elements, and commands serve them
	HaltMonitor                       // stops no command: MONITOR clients receive all commands
	HaltReadOnly                      // commands that change something are refused: this server is a replica
	HaltNoReplicas                    // likewise, while too few replicas would receive the change
	HaltMasterDown                    // commands without FlagStale are refused: the replica has lost the link to its primary

	HaltPaused = HaltChanges | HaltAll
	// HaltReplication has the halts of a node that replicates.
	HaltReplication = HaltReadOnly | HaltNoReplicas | HaltMasterDown
)

// Limits returns the limits in force.
func (s *Server) Limits() *env.Limits { return s.ActiveLimits.Load() }

// SuspendExpiry stops or resumes the removal of expired keys for the time of a pause, as in Redis.
// Commands do not find expired keys meanwhile. The caller has locked the pause.
func (s *Server) SuspendExpiry(hold bool) {
	if f := s.Options.SuspendExpiry; f != nil {
		f(hold)
	}
}

// RedisVersion is the Redis version that clients are told. Several client libraries depend on it:
// below 7.2 they do not send CLIENT SETINFO, and from 7.4 on they send commands that we do not
// have.
const RedisVersion = "7.2.7"

// WriteModules writes a list of modules with redis-cell, by which applications detect CL.THROTTLE.
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

// Table returns the command table, from which the documentation is generated.
func (s *Server) Table() *Table { return s.Commands }

// SetLoading sets or clears the state of loading. While the server loads its state it runs only
// commands with FlagLoading or, under its conditions, FlagSyncing.
func (s *Server) SetLoading(loading bool) {
	if loading {
		s.Halts.Or(HaltLoading)
	} else {
		s.Halts.And(^HaltLoading)
	}
}

// Loading reports whether the server is still loading its state.
func (s *Server) Loading() bool { return s.Halts.Load()&HaltLoading != 0 }

// SetHalt sets or clears a halt. Any goroutine may call it.
func (s *Server) SetHalt(halt uint32, on bool) {
	if on {
		s.Halts.Or(halt)
	} else {
		s.Halts.And(^halt)
	}
}

// Node returns the server's role in replication. A server without the option is always a primary
// without replicas.
func (s *Server) Node() env.Node {
	if s.Options.Node == nil {
		return env.Standalone{RunID: s.Process().RunID()}
	}
	return s.Options.Node
}

// Process returns the properties of the process that INFO shows.
func (s *Server) Process() env.Process {
	if s.Options.Process == nil {
		return env.NoProcess{}
	}
	return s.Options.Process
}

// observe applies the settings of the slow log and the latency monitor.
func (s *Server) observe(o *stats.Observing) {
	s.Slow.SetMax(o.SlowEntries)
	s.Events.SetThreshold(o.Latency)
}
