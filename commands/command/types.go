package command

import (
	"log/slog"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// A command refers to its calls, a call to its worker and its client, so these types are declared
// together.

// Command is one declarative entry of the table. Dispatch, COMMAND with DOCS and GETKEYS, ACL
// categories, statistics, docs/commands.md and the README's table all derive from it. There is no
// second list of command names.
type Command struct {
	// Name is in lower case. A subcommand has the name of its container and a bar before its own:
	// "client|list".
	Name string
	// Arity counts the name itself. A negative one is a minimum.
	Arity int
	Flags Flag
	Keys  KeySpec
	// Categories are the ACL categories in addition to those that Flags imply.
	Categories Category
	Group      string
	Summary    string
	// Syntax is the part of the usage after the name.
	Syntax     string
	Since      string
	Complexity string
	// Reply describes the reply in words.
	Reply string
	// Run executes a call. It is nil for a container.
	Run func(*Call)
	// Parse and Answer are the two halves of a command that asks the store one question: see
	// ask.go. The decision between them may be made elsewhere. The table builds Run from them and
	// the store, unless the entry has its own Run.
	Parse  func(*Call) resp.Error
	Answer func(*Call, *decide.Ask)
	Sub    []*Command
	// WordWork is the work of each argument of a call with many arguments, in units: see work.go. 0
	// stands for the default, which is what most keys and elements take.
	WordWork int
	// Files says that a call may wait for a disk. Such calls have their own turns in the
	// background.
	Files bool
	// Writes reports whether a call changes something, for commands that change something only in
	// some calls; nil if FlagWrite decides.
	Writes func(c *Call, cmd *Command, args [][]byte) bool
	// Rejected is notified that a call is refused with e before it runs, and returns the error to
	// reply with; nil to reply with e itself.
	Rejected func(c *Call, e resp.Error) resp.Error
	// Plan describes what a call may do, for commands that run others; nil for all others.
	Plan func(c *Call, cmd *Command, args [][]byte) Plan
	// Work returns the extra cost of a queued call, given how many argument words its group has
	// queued before it in the same transaction; nil if there is none.
	Work func(c *Call, cmd *Command, args [][]byte, before int) int
	// Waits reports whether a call waits for room if a limit has none. nil for commands that never
	// wait.
	Waits func(s *Server, args [][]byte) bool
	// Urgent says that a call in the background waits only for other urgent ones.
	Urgent bool
	// Serves says that the command may add elements under a key for which clients wait. The table
	// sets it for the commands that write elements of lists and sorted sets.
	Serves bool
	// RunsBusy reports whether a call may run while a script is busy, for commands with FlagAllowBusy
	// of which only some calls may; nil for all others.
	RunsBusy func(args [][]byte) bool
	// Copies returns about how many bytes the reply of a call copies, for commands that reply with
	// parts of the values of their keys; nil for all others.
	Copies func(st env.Store, db int, args [][]byte) int
	// ReplySize returns about how many bytes the reply of a call in the background copies, for
	// commands whose keys do not determine it; nil for all others.
	ReplySize func(cl *Client, st env.Store, cmd *Command, args [][]byte) int

	Disclosure
	placed
}

// placed has the fields of an entry that the table fills in.
type placed struct {
	ID     int
	group  int // index of the command's group
	Parent *Command
	// InlineWords is the number of arguments up to which a call runs on its loop without further
	// checks: see work.go.
	InlineWords int
	Class       stats.Class
}

// Disclosure says which parts of a call the log and other users may see.
type Disclosure struct {
	// AuditAttrs returns the attributes of a log line in addition to the caller; nil adds none. It
	// is for commands with FlagAudit.
	AuditAttrs func(c *Call) []slog.Attr
	// Change is the kind of change that the list of changes shows for a call, such as "flush"; "" if
	// the command makes none or records the change itself. It is for commands with FlagAudit.
	Change string
	// Named is the number of arguments after the subcommand that the list of changes shows: names of
	// users and policies, and durations, which are no secrets.
	Named int
	// Pattern is the index of the argument of a change that is a key, or a pattern of keys, of the
	// policy named by the argument before it; 0 if there is none. The list of changes also shows
	// the arguments after it, such as for how long and why.
	Pattern int
	// ByCallers says that clients call the command all the time, so that it counts as a change only
	// if the admin port runs it.
	ByCallers bool
	// Secrets selects the arguments that others must not see; nil if there are none.
	Secrets stats.Secrets
}

// Call is one execution of a command: the client, the arguments and the writer of the reply.
type Call struct {
	*Worker
	Client *Client
	Cmd    *Command
	Args   [][]byte // Args[0] is the name as the client sent it
	// DerivedKey is the key of a command with a derived key, if the store has prefetched it; see
	// [KeySpec.Derived].
	DerivedKey []byte
	W          *resp.Writer
	Failed     bool
}

// Worker is the part of a feeding goroutine's state that commands use: its handle of the store, and
// the state of the groups. Only one goroutine at a time may use it.
type Worker struct {
	Owner  any // the session's part of the worker; only package session uses it
	Store  env.Store
	Server *Server
	// Journal records effects; nil without a journal.
	Journal env.Recording
	// OnError counts the error replies that the worker's writers write.
	OnError func(e resp.Error, from resp.Origin)
	// Call is the running command, or the last one.
	Call *Call
	Work int // units done in this batch: see work.go
	running
	asking
	scratch
	lookups
	stats.Lines
	states [maxGroups]any // of the groups: see Slot
}

// asking has what the running command asks.
type asking struct {
	ask decide.Ask // of a command that is decided at once
	// Collector gathers the asks for a Remote; nil if the store decides at once.
	Collector Collector
}

// Collector gathers the asks for a Remote of a worker's commands.
type Collector interface {
	// NewAsk returns the next ask of the running command.
	NewAsk() *decide.Ask
	// Add takes the asks of the running command, which Parse has filled in: Answer is called after
	// the decision. Drop discards them.
	Add(c *Call)
	Drop()
}

// running describes how the worker's command runs.
type running struct {
	Busy bool // a script has blocked the store for long: few commands may run
	// Volatile says that the arguments of the running command are not valid until the end of the
	// batch, because a script has made them.
	Volatile bool
	// WorldBusy says that the command has to wait for another goroutine that has stopped the world.
	WorldBusy bool
	// Again says that the command lacked memory and has to run again from its beginning.
	Again bool
	// Serves says that replies to clients that waited for elements are ready. Publishes says that
	// messages are: see Hooks.
	Serves, Publishes bool
	// Actor is the ID of the client for which a worker without a running command works, 0 for none.
	// Served is the ID of the waiting client that takes elements which another client has added, 0
	// while there is none.
	Actor, Served int64
	// Exclusive is the command that this worker runs while no other goroutine is in the store; nil
	// if there is none.
	Exclusive *Exclusive
	// Yield moves the running command to another goroutine; nil for workers without a coroutine.
	// Script is the running script, which the scripting group has set.
	Yield  func()
	Script any
}

// scratch has buffers that a command uses while it runs.
type scratch struct {
	Keys [][]byte     // the keys to prefetch
	Text []byte       // a key or value that is being read
	Refs []env.KeyRef // the keys to lock
}

// lookups counts keyspace hits and misses. Denied counts the refusals of a series of equal commands
// that was not added to the statistics yet.
type lookups struct {
	Hits, Misses atomic.Int64
	Denied       int64
}

// Seen is what the limiters have recorded about keys and their groups. Any goroutine may call its
// methods, except LackedMemory.
type Seen interface {
	// Denied and Called return the keys with the most denied and the most calls, over all workers.
	Denied(now limit.Instant) stats.SeenKeys
	Called(now limit.Instant) stats.SeenKeys
	// TakeGroups returns what was recorded since its last call, sorted by name.
	TakeGroups() []stats.SeenGroup
	// Groups returns the decisions by group of keys.
	Groups() []stats.GroupCount
	// LackedMemory records that a call of the worker about key was refused for lack of memory. Only
	// the worker's goroutine may call it.
	LackedMemory(w *Worker, key []byte)
}
