package command

import (
	"log/slog"
	"sync/atomic"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// The types Command, Call and Worker are declared together because they refer to each other.

// Command is one declarative entry of the table. Dispatch, COMMAND with DOCS and GETKEYS, ACL
// categories, statistics, docs/commands.md and the README's table are all derived from it. There is
// no second list of command names.
type Command struct {
	// Name is in lower case. The name of a subcommand has the name of its container and a bar in
	// front: "client|list".
	Name string
	// Arity is the number of arguments, including the name. A negative value is a minimum: -3 means
	// at least three.
	Arity int
	Flags Flag
	Keys  KeySpec
	// Categories are the ACL categories of the command, without those that Flags imply.
	Categories Category
	Group      string
	Summary    string
	// Syntax is the syntax of the arguments after the name, as usage texts show it.
	Syntax     string
	Since      string
	Complexity string
	// Reply describes the reply in words.
	Reply string
	// Run executes a call. It is nil for a container. It can use what every store has: see
	// [env.Store].
	Run func(*Call)
	// RunOn takes the place of Run for a command that needs more of its store: see [On]. The table
	// makes Run of it.
	RunOn Handler
	// Parse and Answer are the two halves of a command that asks the store one question: see
	// ask.go. Between them the store or a Remote decides the ask. The table makes Run of them,
	// unless the entry has Run or RunOn.
	Parse  func(*Call) resp.Error
	Answer func(*Call, *decide.Ask)
	Sub    []*Command
	// WordWork is the work of each argument, in the units of work.go. 0 stands for the default: 2
	// if the command writes, since it has to find or insert a key or an element, and otherwise 1.
	WordWork int
	// Files says that a call may wait for a disk. In the background, such calls wait for their turn
	// in a queue of their own.
	Files bool
	// Writes reports whether a call of cmd with args changes something, for commands that change
	// something only in some calls. nil means that FlagWrite says so for all calls.
	Writes func(c *Call, cmd *Command, args [][]byte) bool
	// Rejected is called when a call is refused with the error e before it runs, and returns the
	// error to reply with. If Rejected is nil, the reply is e.
	Rejected func(c *Call, e resp.Error) resp.Error
	// Plan returns what a call of cmd with args may do, for commands that run other commands; nil
	// for all others.
	Plan func(c *Call, cmd *Command, args [][]byte) Plan
	// Work returns the extra cost of a queued call of cmd with args, in units. before is the number
	// of arguments of the commands with a Work function that were queued before it in the
	// transaction.
	// Work is nil for commands without an extra cost.
	Work func(c *Call, cmd *Command, args [][]byte, before int) int
	// Waits reports whether a call with args waits for room if a limit has none; nil for commands
	// that never wait.
	Waits func(s *Server, args [][]byte) bool
	// Queues reports whether a call with args waits in the queue of its key. It is set if calls may also wait for units
	// that they have taken in advance. If it is nil, Waits decides.
	Queues func(s *Server, args [][]byte) bool
	// Urgent says that calls in the background wait for their turn in a queue of urgent calls, so
	// that other slow calls do not delay them.
	Urgent bool
	// Serves says that the command may add elements to a key for which clients wait. The table also
	// sets it for the commands of lists and sorted sets that have FlagDenyOOM but not FlagBlocking.
	Serves bool
	// RunsBusy reports whether a call with args may run while a script is busy, for commands with
	// FlagAllowBusy of which only some calls may run then; nil for all others.
	RunsBusy func(args [][]byte) bool
	// Copies returns about how many bytes the reply of a call with args copies, for commands that
	// reply with parts of the values of their keys; nil for all others.
	Copies func(st env.Local, db int, args [][]byte) int
	// ReplySize returns about how many bytes the reply of a call of cmd with args in the background
	// copies, for commands whose keys do not determine that; nil for all others.
	ReplySize func(cl *Client, st env.Store, cmd *Command, args [][]byte) int

	Disclosure
	placed
}

// placed has the fields of an entry that the table fills in.
type placed struct {
	ID     int
	group  int // index of the command's group
	Parent *Command
	// InlineWords is the number of arguments up to which a call runs on its event loop without
	// further checks: see work.go.
	InlineWords int
	Class       stats.Class
}

// Disclosure says which parts of a call the log and other users may see.
type Disclosure struct {
	// AuditAttrs returns the attributes of the audit log line of a call, in addition to the
	// attributes of the caller; nil adds none. It is for commands with FlagAudit.
	AuditAttrs func(c *Call) []slog.Attr
	// Change is the kind of change, such as "flush", that the list of changes shows for a call. It
	// is "" if the command makes no such change or records the change itself. It is for commands
	// with FlagAudit.
	Change string
	// Named is the number of arguments after the subcommand that the list of changes shows. Only
	// names of users and policies, and durations, may be shown: they are no secrets.
	Named int
	// Pattern is the index of an argument that is a key, or a pattern of keys, of the policy that
	// the argument before it names; 0 if there is none. The list of changes shows these two
	// arguments and all arguments after them, such as a duration and a reason.
	Pattern int
	// ByCallers says that applications call the command all the time, so that a call is listed as a
	// change only if it came by the admin port.
	ByCallers bool
	// Secrets selects the arguments that logs and other users must not see; nil if there are none.
	Secrets stats.Secrets
}

// Call is one execution of a command by a worker for a client.
type Call struct {
	*Worker
	Client *Client
	Cmd    *Command
	Args   [][]byte // the arguments; Args[0] is the name of the command as the client sent it
	// DerivedKey is the first derived key of the call (see [KeySpec].Derived) if it was computed to
	// prefetch the key, and otherwise nil.
	DerivedKey []byte
	W          *resp.Writer
	Failed     bool
}

// Worker is the part of a feeding goroutine's state that commands use: its handle of the store, and
// the states that groups keep for the worker. Only one goroutine at a time may use it.
type Worker struct {
	Owner  any // the session package's part of the worker; only that package uses it
	Store  env.Store
	Server *Server
	// Journal records effects of commands; nil without a journal.
	Journal env.Recording
	// OnError counts the error replies that the worker's writers write.
	OnError func(e resp.Error, from resp.Origin)
	// Call is the running call or, between commands, the last one.
	Call *Call
	Work int // units of work that this batch has done: see work.go
	running
	asking
	scratch
	lookups
	stats.Lines
	states [maxGroups]any // the state that each group keeps for the worker: see Slot
	// local is Store if the keys are in this process, and otherwise nil. stores has, for each type
	// of store that commands need, a pointer to Store as that type: see Handler.
	local  env.Local
	stores []any
}

// asking has the asks of the running command.
type asking struct {
	ask decide.Ask // the ask of a command that is decided at once
	// Collector gathers the asks that a Remote decides; nil if the store decides them at once.
	Collector Collector
	beside    Collector // the Collector while a Run function runs that must not use it
}

// Collector gathers the asks of a worker's commands, which a Remote then decides together.
type Collector interface {
	// NewAsk returns a new ask of the running command, for Parse to fill in.
	NewAsk() *decide.Ask
	// Add takes the asks of the running command c, which Parse has filled in: the command's Answer
	// is called after the decision. Drop discards these asks.
	Add(c *Call)
	Drop()
}

// running describes how the worker's present command runs.
type running struct {
	Busy bool // a script has blocked the store for a long time, so few commands may run
	// Volatile says that the arguments of the running command belong to a script, so that they may
	// become invalid before the end of the batch.
	Volatile bool
	// WorldBusy says that another goroutine has stopped the world, and that the command has to run
	// again when the world is started.
	WorldBusy bool
	// Again says that the command lacked memory and has to run once more from its beginning.
	Again bool
	// Serves says that replies to clients that waited for elements are ready: then [Hooks].Unlocked
	// has to be called. Publishes says that messages are ready: then [Hooks].AfterCommand has to be
	// called.
	Serves, Publishes bool
	// Actor is the ID of the client for which the worker works while it runs no command; 0 for
	// none. While elements that another client has added are given to a waiting client, Served is
	// the ID of the waiting client; otherwise it is 0.
	Actor, Served int64
	// Exclusive is the command that this worker runs while no other goroutine is in the store; nil
	// if it runs none.
	Exclusive *Exclusive
	// Yield moves the running command to another goroutine; nil for workers without a coroutine.
	// Script is the running script, set by the scripting group.
	Yield  func()
	Script any
}

// scratch has buffers of the worker that a command uses while it runs.
type scratch struct {
	Keys [][]byte     // the keys to prefetch
	Text []byte       // a key or value that is being read
	Refs []env.KeyRef // the keys to lock
}

// lookups counts keyspace hits and misses, and denied calls. Denied has the refusals of the present
// series of calls of one command, which are added to the statistics when the series ends.
type lookups struct {
	Hits, Misses atomic.Int64
	Denied       int64
}

// Seen has the statistics of the limiters about keys and about groups of keys. Any goroutine may
// call its methods, except LackedMemory.
type Seen interface {
	// Denied returns the keys with the most denied calls, and Called the keys with the most calls,
	// both over all workers and as of the instant now.
	Denied(now limit.Instant) stats.SeenKeys
	Called(now limit.Instant) stats.SeenKeys
	// AppendSummary appends the bytes of the summary of the most frequent keys as of the instant now, for other servers
	// of the store, to dst.
	AppendSummary(dst []byte, now limit.Instant) []byte
	// TakeGroups returns what was recorded about groups of keys since its last call, sorted by
	// name.
	TakeGroups() []stats.SeenGroup
	// Groups returns the number of decisions by group of keys.
	Groups() []stats.GroupCount
	// LackedMemory records that a call about key by the worker w was refused for lack of memory.
	// Only the worker's goroutine may call it.
	LackedMemory(w *Worker, key []byte)
}
