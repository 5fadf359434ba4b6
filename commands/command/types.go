package command

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// The types of this file refer to each other, so they are declared together. Their methods are in
// command.go, client.go, wait.go and other files of the package.

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

// Client is the part of a connection's state that commands and other sessions may use. Fields
// without a note belong to the goroutine that feeds the client.
type Client struct {
	Owner     any // the session; only package session uses it
	Server    *Server
	Peer      transport.Peer
	ID        int64
	Created   limit.Instant
	Proto     int  // 2 or 3
	Authed    bool // has authenticated, or connected when that was not needed
	Reply     ReplyMode
	Spent     int // bytes in and out before authentication
	Closing   bool
	Exclusive bool // a transaction or script is running: the client must not be parked
	// ProxyOf is the client for which this one acts while its command runs on another goroutine;
	// nil for a client that is not a proxy.
	ProxyOf    *Client
	Background bool // a proxy that is not exclusive: it must not be parked, and has no locks
	Marks      Mark
	// User is the authenticated user, or the user default before authentication. Only the feeding
	// goroutine sets it.
	User atomic.Pointer[acl.User]
	// The fields from Database to Subscriptions are also read by other goroutines: CLIENT LIST, the
	// janitor.
	Database atomic.Int32
	Protocol atomic.Int32 // Proto, for other goroutines
	Locked   atomic.Int64 // the instant since which authentication is due, 0 if it is not
	Killed   atomic.Bool
	Spared   atomic.Bool              // CLIENT NO-EVICT ON
	Self     atomic.Pointer[Identity] // nil if the client has given no names; set by the feeding goroutine only
	// Invalidated says that the client receives invalidations of keys that it or another client tracks.
	// Once set it stays set. Subscriptions is the number of the client's subscriptions, of all
	// kinds.
	Invalidated   atomic.Bool
	Subscriptions atomic.Int32
	clientParts
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

// Wait is a command that waits: for a timer, for a slow command that runs in the background, or for
// room under a limit. Its session is not fed until the wait is over, so input of the client behind
// the command waits, too.
//
// To reply, a goroutine first claims the wait; only one can. Any goroutine may do that. All fields
// except State are set before the command is parked, or by the goroutine that has claimed it.
type Wait struct {
	Client *Client
	Cmd    *Command
	Proto  int
	State  atomic.Int32
	Gone   atomic.Bool // the client has disconnected: set when the session is closed

	// Reply, Decided and Broken are valid after State is WaitAnswered. The output is Reply and then
	// what Resume writes. Decided is the result of a wait for room, nil for other waits. Broken
	// says that the client is to be closed.
	Reply   resp.Reply
	Decided *Decided
	Broken  bool
	// Failed says that the reply is an error or contains one. Rejected says that the command was
	// never run: see [Wait.Forbidden].
	Failed, Rejected bool
	// NoEffect says that the command has had no effect. Its reply does not wait for the disk, since
	// it is true even if the journal fails.
	NoEffect bool
	// RunAgain says that there is no reply: the command has not run yet, and runs from its
	// beginning when the session is fed again.
	RunAgain bool
	// Kept is how many bytes the wait keeps: the argument of [Call.NewWait], what Park adds, and a
	// transaction of the session that runs exclusively. Only the goroutine that feeds the session
	// uses it.
	Kept     int
	reserved int64 // what [Wait.Reserve] has charged
	// Args are the arguments that are needed to check the user's permission again; nil for a
	// command that is not checked again.
	Args [][]byte
	// Unbegun is closed by [Wait.Refuse]; nil for a command that does not wait for its turn in the
	// background, or that has too much to undo.
	Unbegun chan struct{}
	// Slice does a part of a command that runs in slices, and reports whether there is more to do;
	// nil for all other commands. Such a wait is for nothing: the session is fed again after other
	// sessions have had their turn.
	Slice func(c *Call) (more bool)

	// Reclaimable says that the goroutine that claimed the wait may release it again. wanted is how
	// the wait was to be ended meanwhile.
	Reclaimable bool
	wanted      atomic.Int32

	stats.Waiting // how long the command has run

	// Resume runs when the session is fed again, on the goroutine that feeds it: for a reply that
	// changes the session. nil if there is nothing to do.
	Resume func(w *resp.Writer)
	// Render is Resume for the replies of several commands. It applies CLIENT REPLY itself.
	Render func(c *Call)
	// Cancel stops whatever the command waits for, without a reply, after the client has
	// disconnected. nil if there is nothing to stop. It must not block.
	Cancel func()
	// OnTimeout writes the reply of a wait that is ended early (CLIENT UNBLOCK, shutdown). nil for
	// a wait that cannot be ended early because it ends soon by itself.
	OnTimeout func(st env.Store, w *resp.Writer)
	// Unanswered says that a server which stops closes the connection instead of replying with
	// OnTimeout: that reply would claim that the time is over or that there were no elements, and
	// both are wrong.
	Unanswered bool
}

// Coroutine describes how a group runs a call of unknown duration: on a coroutine with its own
// worker, which moves to another goroutine if the call takes long.
type Coroutine struct {
	// Do runs the call. c belongs to the coroutine's worker and has copies of the arguments. arg is
	// the argument of RunOnCoroutine. It is valid until c yields.
	Do func(c *Call, arg any)
	// Script returns the running script, and whether it has written. It is called after the call
	// has yielded.
	Script func(w *Worker) (script Killable, wrote bool)
	// Again returns a function that runs the call of Do again from its beginning.
	Again func(c *Call) func(c *Call)
}

// Activity is what a client is doing, and the memory that is kept for it.
type Activity struct {
	Description
	Active      limit.Instant // when the last bytes arrived
	LastCommand *Command      // nil before the first
	Blocked     bool          // the client is blocked in a command
	Queued      int           // commands that are queued until EXEC, -1 outside of MULTI
	Held        ClientMemory
}

// Group is a set of commands: their entries, and the private state that the group keeps for the
// server, for each worker and for a client.
type Group struct {
	Commands []*Command
	// Needs are the parts without commands that the group shares with others, such as the queues of
	// clients that wait for elements. A table has each part once, however many of its groups need
	// it. A part has no Needs itself.
	Needs []*Group
	// Server creates the group's state for the server, and returns the hooks by which the group
	// takes part in the work of others. nil for a group without both.
	Server func(s *Server, slot Slot) (state any, hooks Hooks)
	// Worker creates the group's state for a new worker, which one goroutine at a time uses; nil if
	// there is none. It is called after Server. The group's commands access the state by [Scratch].
	Worker func(w *Worker, slot Slot) any
	// Figures are the figures of what the group counts; see [Counted].
	Figures []figure.Figure
}

// Table finds commands by name. It is immutable, except for the replies that it caches.
type Table struct {
	groups  []Group
	Entries []*Command  // by id: containers, commands and subcommands
	Sorted  []*Command  // without subcommands, sorted by name
	names   []tableName // of Sorted, by the name in use
	Slots   []nameSlot  // open addressing over endsHash; the length is a power of two
	// Remote says that commands ask a Remote. unserved has the commands that cannot, by the name in
	// use: see [NewStoreTable].
	Remote   bool
	unserved map[string]string
	vocabulary

	Info, Docs madeOnce // the replies about Sorted
}

// tableName is a command and the name in use for it.
type tableName struct {
	name string
	cmd  *Command
}

// Host declares what commands may ask of the session that runs them, in addition to the reply: to
// wait, to continue on another goroutine, to use the store from another goroutine. All of it is
// rare, since it costs an interface call.
type Host interface {
	// Park makes the client of p wait for p. Keep adds bytes, which may be negative, to the memory
	// that waits and transactions take, unless that would exceed maxmemory-clients: then it returns
	// false.
	Park(p *Wait)
	Keep(bytes int64) bool
	// Offload runs f in the background, with the session parked until f returns. size returns how
	// much memory the reply takes. It is nil for a short reply.
	Offload(c *Call, size func(st env.Store) int, f func(st env.Store, w *resp.Writer))
	// Background runs do, which is the running command or the rest of it, on a goroutine in the
	// background.
	Background(c *Call, do func(c *Call))
	// Rerun runs a command again that was counted and has left its loop before it changed anything.
	Rerun(c *Call, cmd *Command)
	// AfterPause delays f until the end of CLIENT PAUSE and returns true; it returns false if there
	// is no pause. proceed is false if the command must not run any more. The caller is in the
	// store.
	AfterPause(f func(proceed bool)) bool
	// EachWorker calls f for every worker, and returns since when their statistics count. f may
	// read guarded fields.
	EachWorker(f func(w *Worker)) (since limit.Instant)
	// Spawn runs f on a goroutine that the shutdown of the server waits for.
	Spawn(f func())
	// SpawnCall runs f on a goroutine with its own worker, which has entered the store. If much is
	// set, for long work, it waits until few of this kind run.
	SpawnCall(much bool, f func(c *Call))
	// WithStore runs f with its own handle of the store, on behalf of a client, at a fresh instant.
	// Only goroutines that may block may call it.
	WithStore(client int64, f func(st env.Store))
	// Recovered records a panic, without its value.
	Recovered(reason any)
	// CountError counts an error reply.
	CountError(e resp.Error, from resp.Origin)

	// Run runs the command of c, whose arity and permissions were checked, and counts it. Reject
	// replies to a command that may not run.
	Run(c *Call)
	Reject(c *Call, e resp.Error)
	// Timed runs f, the rest of a command that has left its loop, and adds the time that f takes to
	// the command's.
	Timed(c *Call, f func(c *Call))
	// Outside runs f, which may wait for a disk, such that a goroutine that stops the world does
	// not wait for f. The caller is in the background and has no locks. For other callers f runs at
	// once.
	Outside(c *Call, f func())
	// Durations returns how long the timed calls of the command with that id took, and the number
	// of all its calls. ClassDurations returns the same distribution for a class of commands.
	Durations(id int) (d stats.Distribution, calls int64)
	ClassDurations(class stats.Class) stats.Distribution
	// ParkExclusive parks the client for a command that has to run while no other goroutine is in
	// the store. do is the rest of the command. It runs after Enqueue was called with the result.
	ParkExclusive(c *Call, do func(c *Call)) *Exclusive
	Enqueue(x *Exclusive)
	// EnqueueWith is Enqueue after need bytes were granted for the reply.
	EnqueueWith(x *Exclusive, need int64)
	// KillExclusive implements SCRIPT KILL. EndExclusive ends the running command, even if it has
	// written, because the server stops at once, and disconnects all clients except asking.
	KillExclusive(c *Call) resp.Error
	EndExclusive(asking *Client)
	// StopWorld keeps all other goroutines out of the store for the rest of the batch. It returns
	// false if another goroutine does that already. The command then runs again when that is over.
	StopWorld(c *Call) bool
	// Pump sends the client of c the stream p after the reply: the client becomes a replica. A
	// goroutine in the store fills p, so p must not wait for a lock of a goroutine that stops the
	// world.
	Pump(c *Call, p transport.Pump)
	// RunOnCoroutine runs a call of unknown duration, with the world stopped. If the call takes
	// long, the client is parked. It reports whether the call is over and has to run again.
	RunOnCoroutine(c *Call, how *Coroutine, arg any) (again bool)
	// CountRejected counts a refused call of cmd by a command that runs others.
	CountRejected(c *Call, cmd *Command)

	// Pause delays the commands that halt selects for d. Unpause ends the pause.
	Pause(st env.Store, d time.Duration, halt uint32)
	Unpause()
	// Unblock ends the wait of a client, and reports whether there was a wait that can be ended.
	Unblock(cl *Client, withError bool) bool
	// Statistics returns the figures of the server. ResetStatistics resets them.
	Statistics() Statistics
	ResetStatistics()
	// Activity returns what a client is doing. Any goroutine may call it. NoteCommand records the
	// command that the client runs, before it ends and is recorded anyway.
	Activity(cl *Client) Activity
	NoteCommand(cl *Client, cmd *Command)

	// CountClients returns the number of clients, and how many of them are blocked.
	CountClients() (all, blocked int64)
	// Client returns the client with that id, or nil. Clients returns all clients in the order of
	// their arrival.
	Client(id int64) *Client
	Clients() []*Client
	// Post queues a message for a client, b or the bytes of f, and returns how much memory that
	// takes. Follow does what next requires, and Posted adds the memory to the statistics: call
	// both without locks. Push is all three for one message.
	Post(cl *Client, b []byte, f *SharedFrame) (next Posted, memory int)
	Follow(cl *Client, next Posted)
	Posted(memory int)
	Push(cl *Client, frame []byte)
	// TakeMessages moves the messages for the client of c into its reply.
	TakeMessages(c *Call)
}

// Hooks are functions by which a group takes part in the work of others. A hook may be nil. Hooks
// without a note are called by the goroutine that feeds the client or uses the worker.
type Hooks struct {
	// BatchEnd is called after a batch of commands, while its input is still valid.
	BatchEnd func(w *Worker)
	// Limited is called with the decision on a for a command of another group. Only one group may
	// have it.
	Limited func(c *Call, a *decide.Ask)
	// Decided is called with the result of a wait for room.
	Decided func(w *Worker, db int, d *Decided, now limit.Instant)
	// Decay is called once a minute, and ResetStats by CONFIG RESETSTAT, for every worker. Any
	// goroutine may call them.
	Decay, ResetStats func(w *Worker)

	// Intercept is called before a command of a client with MarkQueuing runs. It reports whether it
	// has answered the command. size is the length of the command in bytes. Only one group may have
	// it.
	Intercept func(c *Call, size int) bool
	// Rejected is called when a command of a client with MarkQueuing or MarkCaching is refused
	// before it runs. c.Cmd is nil if there is no such command.
	Rejected func(c *Call)
	// Run runs the command of a client with MarkTracking. Only one group may have it.
	Run func(c *Call)
	// Awaits reports whether a client with Told set has to wait before it runs the commands that
	// have arrived. The group wakes the client afterwards.
	Awaits func(cl *Client) bool
	// AfterCommand is called after a command has ended and released its locks, for workers that
	// have set Publishes.
	AfterCommand func(w *Worker)

	// Serve gives elements under the locked keys to the clients that wait for them. Unlocked
	// answers these clients after everything was unlocked, or disconnects them if the command was
	// abandoned. It is called for workers that have set Serves. Only one group may have them.
	Serve    func(c *Call)
	Unlocked func(c *Call, abandoned bool)

	// ReadsElsewhere returns a function to call right before and right after the running command
	// reads on another goroutine; nil if there is nothing to call.
	ReadsElsewhere func(c *Call) func()
	// Proxied is called when proxy starts to act for cl on another goroutine, and Merged when that
	// is over. Transfer moves state that only one of them may have to proxy, and returns how many
	// bytes that takes.
	Proxied, Merged func(cl, proxy *Client)
	Transfer        func(cl, proxy *Client) (bytes int)
	// NeedsStore reports whether cmd, which may run while a script is busy, would wait for
	// something that the script has locked.
	NeedsStore func(cl *Client, cmd *Command) bool

	// Reset resets the group's state of a client (RESET). It may do only a part, and reports
	// whether there is more.
	Reset func(c *Call) (more bool)
	// Kept returns how many bytes a client keeps for a transaction, and how many commands are
	// queued in it, -1 outside of a transaction.
	Kept func(cl *Client) (bytes, queued int)
	// Closed is called after a client has disconnected.
	Closed func(cl *Client)
	// Describe adds the group's fields of CLIENT LIST for a client. Any goroutine may call it.
	Describe func(cl *Client, d *Description)
	// Memory returns how many bytes the group keeps for all clients. Any goroutine may call it.
	Memory func() int64
	// RulesChanged is called when the permissions of a user have changed. Any goroutine may call
	// it.
	RulesChanged func(u *acl.User, before *acl.Rules)
	// LimitsChanged is called when limits have changed. Any goroutine may call it.
	LimitsChanged func()
}

// hooks has the hooks of all groups.
type hooks struct {
	all       []*Hooks
	batchEnd  []func(w *Worker)
	intercept func(c *Call, size int) bool
	run       func(c *Call)
	limited   func(c *Call, a *decide.Ask)
	serve     func(c *Call)
	unlocked  func(c *Call, abandoned bool)
}

// nameSlot is an entry of the hash table of names.
type nameSlot struct {
	first, last foldedWord
	name        string   // the name in use, in lower case
	Cmd         *Command // nil if the slot is free
}
