package command

import (
	"log/slog"
	"sync/atomic"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Server is the part of the server's state that all sessions share and that commands may use.
type Server struct {
	Host         Host
	Options      env.Options
	Commands     *Table
	Log          *slog.Logger
	ActiveLimits atomic.Pointer[env.Limits]
	Users        *acl.Users
	Refusals     acl.Log // the entries of ACL LOG
	Changes      stats.Changes
	Figures      *figure.Registry // the metrics of the server and all its parts
	Seen         Seen             // statistics of keys for INFO and RL.TOP; nil without limiters
	// Logins limits guesses of passwords; nil if the table has no commands that log in.
	Logins Logins
	// ClientLine returns the line of CLIENT LIST for cl at the instant now; nil if the table does
	// not have that command.
	ClientLine func(cl *Client, now limit.Instant) []byte
	Draining   atomic.Bool   // set when the server begins to stop: no command may begin to wait
	Halts      atomic.Uint32 // the bits that keep commands from running, such as HaltLoading
	// Slow records calls that took long (SLOWLOG). Events records events that took long, including
	// calls (LATENCY).
	Slow   stats.SlowLog
	Events stats.Events
	Ended  atomic.Bool   // set when the server is closed, so that slow commands may give up
	Large  budget.Budget // bounds the memory that all large replies take together: see LargeRoom
	hooks  hooks
	states [maxGroups]any // the state that each group keeps for the server: see Slot
}

// These are the bits of Server.Halts. Most of them keep commands from running.
const (
	HaltLoading    uint32 = 1 << iota // commands without FlagLoading or FlagSyncing are refused: the server loads its state
	HaltChanges                       // commands that may change something are delayed
	HaltAll                           // all commands are delayed
	HaltServing                       // no command is stopped: clients wait for elements, and commands have to serve them
	HaltMonitor                       // no command is stopped: commands have to be recorded for MONITOR clients
	HaltReadOnly                      // commands that change something are refused: this server is a replica
	HaltNoReplicas                    // commands that change something are refused while too few replicas would receive the change
	HaltMasterDown                    // commands without FlagStale are refused: the replica has lost the link to its primary

	HaltPaused = HaltChanges | HaltAll
	// HaltReplication has the halts that come from the server's role in replication.
	HaltReplication = HaltReadOnly | HaltNoReplicas | HaltMasterDown
)

// Limits returns the limits in force. The caller must not change them. Any goroutine may call it.
func (s *Server) Limits() *env.Limits { return s.ActiveLimits.Load() }

// SuspendExpiry stops the removal of expired keys if hold is true, for the time of a pause, and
// resumes it otherwise. As in Redis, commands do not find expired keys during the pause. The caller
// holds the mutex of the pause.
func (s *Server) SuspendExpiry(hold bool) {
	if f := s.Options.SuspendExpiry; f != nil {
		f(hold)
	}
}

// RedisVersion is the version of Redis that the server reports to clients. Several client libraries
// depend on it: below 7.2 they do not send CLIENT SETINFO, and from 7.4 on they send commands that
// this server does not have.
const RedisVersion = "7.2.7"

// WriteModules writes to w the list of modules, which has one entry: redis-cell. Applications look
// for it before they use CL.THROTTLE.
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

// Table returns the command table, from which the documentation of the commands is generated.
func (s *Server) Table() *Table { return s.Commands }

// SetLoading sets or clears HaltLoading. While the server loads its state, it runs only commands
// with FlagLoading or FlagSyncing. Any goroutine may call it.
func (s *Server) SetLoading(loading bool) {
	if loading {
		s.Halts.Or(HaltLoading)
	} else {
		s.Halts.And(^HaltLoading)
	}
}

// Loading reports whether the server is loading its state: after its start, and on a replica again
// during each full resynchronization. Any goroutine may call it.
func (s *Server) Loading() bool { return s.Halts.Load()&HaltLoading != 0 }

// SetHalt sets the bits halt of s.Halts if on is true, and clears them otherwise. Any goroutine may
// call it.
func (s *Server) SetHalt(halt uint32, on bool) {
	if on {
		s.Halts.Or(halt)
	} else {
		s.Halts.And(^halt)
	}
}

// Node returns the server's side of replication. Without the option of that name it is an
// [env.Standalone], a primary that never has a replica.
func (s *Server) Node() env.Node {
	if s.Options.Node == nil {
		return env.Standalone{RunID: s.Process().RunID()}
	}
	return s.Options.Node
}

// Machine returns the clock by which clients are delayed: the clock of st, unless it is manual. It is for everything
// that does not concern keys.
func (s *Server) Machine(st env.Store) env.Machine {
	if m := s.Options.Machine; m != nil {
		return m
	}
	return st
}

// MachineNow returns the present instant of the clock of [Server.Machine].
func (s *Server) MachineNow() limit.Instant {
	if m := s.Options.Machine; m != nil {
		return m.Now()
	}
	return s.Options.Now()
}

// Process returns the properties of the process that INFO shows; an [env.NoProcess] if Options has
// none.
func (s *Server) Process() env.Process {
	if s.Options.Process == nil {
		return env.NoProcess{}
	}
	return s.Options.Process
}

func (s *Server) observe(o *stats.Observing) {
	s.Slow.SetMax(o.SlowEntries)
	s.Events.SetThreshold(o.Latency)
}
