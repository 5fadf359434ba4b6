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

// The types of this file refer to each other, so they stand together. Their methods are
// in the files above it: command.go, client.go, wait.go and so on.

// Command is one declarative entry of the table. Dispatch, COMMAND, its DOCS and
// GETKEYS, ACL categories, statistics, docs/commands.md and the README's table all
// derive from it; there is no second list of command names.
type Command struct {
	// Name in lower case. A subcommand has the name of its container before a bar:
	// "client|list".
	Name string
	// Arity counts the name itself; a negative one is a minimum.
	Arity int
	Flags Flag
	Keys  KeySpec
	// Categories are the ACL categories beside those that Flags imply.
	Categories Category
	Group      string
	Summary    string
	// Syntax is what follows the name.
	Syntax     string
	Since      string
	Complexity string
	// Reply says in words what is answered.
	Reply string
	// Run is nil for a container.
	Run func(*Call)
	// Parse and Answer are the two halves of a command that asks one thing of the store, so
	// that what lies between them may happen elsewhere: see ask.go. The table makes Run of
	// them with the store in between, unless the entry has a Run of its own.
	Parse  func(*Call) resp.Error
	Answer func(*Call, *decide.Ask)
	Sub    []*Command
	// WordWork is the work of each word of a call that has many, in units: see work.go.
	// 0 is what the keys and elements of most take.
	WordWork int
	// Files says that a call may wait for a disk: its turn in the background is not that of others.
	Files bool
	// Writes reports whether a call changes something, for commands of which FlagWrite does
	// not say it; nil for all others.
	Writes func(c *Call, cmd *Command, args [][]byte) bool
	// Rejected tells that a call is refused before it runs, and returns the error to answer;
	// nil for e itself.
	Rejected func(c *Call, e resp.Error) resp.Error
	// Plan says what a call may do, for commands that run others; nil for all others.
	Plan func(c *Call, cmd *Command, args [][]byte) Plan
	// Work returns the extra cost of a queued call, given how many argument words its group has
	// queued before it in the same transaction; nil if there is none.
	Work func(c *Call, cmd *Command, args [][]byte, before int) int
	// Waits reports whether a call waits for room if there is none. nil for commands that
	// never do.
	Waits func(s *Server, args [][]byte) bool
	// Urgent says that a call which runs in the background waits for no other but urgent ones.
	Urgent bool
	// ReplySize is about how many bytes the reply of a call copies that runs in the background, for
	// commands whose keys do not say it; nil for all others.
	ReplySize func(cl *Client, st env.Store, cmd *Command, args [][]byte) int

	Disclosure
	placed
}

// placed is what the table makes of an entry.
type placed struct {
	ID     int
	group  int // index of its group
	Parent *Command
	// InlineWords is how many words of a call nobody asks about: see work.go.
	InlineWords int
	// Feeds says that it may put elements under a key that somebody waits for.
	Serves bool
	Class  stats.Class
}

// Disclosure is what others are told of calls.
type Disclosure struct {
	// AuditAttrs is what a line of the log says of a call beside who has made it; nil says
	// nothing. For commands with FlagAudit.
	AuditAttrs func(c *Call) []slog.Attr
	// Pattern is which argument of a change is a key of the policy before it, or a pattern of such; 0 if
	// none is. The list of changes has what is behind it, too, such as for how long and why.
	Pattern int
	// ByCallers says that callers do it all day, so that it is a change only if the admin port runs it.
	ByCallers bool
	// Secrets are the words that others may not see; nil if there are none.
	Secrets stats.Secrets
}

// Call is one command being run: who calls, with what, and where the reply goes.
type Call struct {
	*Worker
	Client *Client
	Cmd    *Command
	Args   [][]byte // Args[0] is the name as it was sent
	// PolicyKey is the key of a command that is about a policy, if the store has been told that
	// it is about to be used; see [KeySpec.AppendPolicyKey].
	PolicyKey []byte
	W         *resp.Writer
	Failed    bool
}

// Client is what commands and other sessions may know of a connection. Fields without a
// note belong to the goroutine that feeds it.
type Client struct {
	Owner     any // the session, which only package session looks at
	Server    *Server
	Peer      transport.Peer
	ID        int64
	Created   limit.Instant
	Proto     int  // 2 or 3
	Authed    bool // has authenticated, or came when that was not needed
	Reply     ReplyMode
	Spent     int // bytes in and out before authentication
	Closing   bool
	Exclusive bool // a transaction or script is running: nothing may park
	// ProxyOf is the client for which this one acts, whose command runs on another goroutine;
	// nil for a client of its own.
	ProxyOf    *Client
	Background bool // a proxy that is not exclusive: nothing may park, and nothing is locked
	Marks      Mark
	// User is who the client is, the user default before it has said so. Set by the feeding
	// goroutine only.
	User atomic.Pointer[acl.User]
	// Read by other goroutines: CLIENT LIST, the janitor.
	Database atomic.Int32
	Protocol atomic.Int32 // proto, for the others
	Locked   atomic.Int64 // instant since which authentication is due, 0 if it is not
	Killed   atomic.Bool
	Spared   atomic.Bool              // CLIENT NO-EVICT ON
	Self     atomic.Pointer[Identity] // nil: none was given; set by the feeding goroutine only
	// Told says that the client is told of changes that it or another one tracks. Once it
	// is set it stays. Subscriptions is how many it has, of all kinds.
	Told          atomic.Bool
	Subscriptions atomic.Int32
	clientParts
}

// Worker is the part of a feeding goroutine that commands use: its handle of the store, and
// what the groups keep for it. One goroutine at a time uses it.
type Worker struct {
	Owner  any // the session's part of it, which only package session looks at
	Store  env.Store
	Server *Server
	// Journal is what is written down of effects; nil where nothing is.
	Journal env.Recording
	// OnError counts the errors that writers of the worker write.
	OnError func(e resp.Error, from resp.Origin)
	// Call is the command that runs, or the last one that has.
	Call *Call
	Work int // units done in this batch: see work.go
	running
	asking
	scratch
	lookups
	stats.Lines
	states [maxGroups]any // of the groups: see Slot
}

// asking is where the running command puts what it wants decided.
type asking struct {
	ask decide.Ask // of a command that is decided at once
	// Collector gathers what a Remote is asked; nil where all is decided at once.
	Collector Collector
}

// Collector gathers what the commands of a worker ask a Remote.
type Collector interface {
	// NewAsk makes the next ask of the running command.
	NewAsk() *decide.Ask
	// Add takes what the running command has asked, which Parse has filled in: Answer is
	// called once it is decided. Drop forgets it.
	Add(c *Call)
	Drop()
}

// running is how the command of a worker runs.
type running struct {
	Busy bool // a script keeps others out of the store for long: few commands may run
	// Volatile says that the words of the running command do not last until the batch
	// ends: a script has made them.
	Volatile bool
	// WorldBusy says that the command has to wait for another who has stopped the world.
	WorldBusy bool
	// Again says that the command has lacked memory, and is to be run from its beginning.
	Again bool
	// Serves says that answers to those who waited for elements are ready, and Publishes
	// that messages are: see Hooks.
	Serves, Publishes bool
	// Actor is for whom a worker works that runs no command, 0 for nobody, and Served who
	// takes elements that somebody else has brought, 0 while nobody does.
	Actor, Served int64
	// Exclusive is the command that this worker runs while nobody else is in the store; nil
	// if it runs none.
	Exclusive *Exclusive
	// Yield hands the running command over to another goroutine; nil for workers that are no
	// coroutine's. Script is what runs then, which its group has put there before.
	Yield  func()
	Script any
}

// scratch is room that a command uses for as long as it runs.
type scratch struct {
	Keys [][]byte     // of prefetch
	Text []byte       // a key or value being read
	Refs []env.KeyRef // what a command locks
}

// lookups counts what was found. Denied are the refusals of the run of equal commands that
// is not counted yet.
type lookups struct {
	Hits, Misses atomic.Int64
	Denied       int64
}

// Server is what all sessions share and commands may know.
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
	// Logins slows down who guesses passwords; nil without commands that log in.
	Logins Logins
	// ClientLine is what CLIENT LIST says of a client; nil without that command.
	ClientLine func(cl *Client, now limit.Instant) []byte
	Draining   atomic.Bool   // set by Drain
	Halts      atomic.Uint32 // what keeps commands from running: see HaltLoading
	// Slow and Events are what took long: SLOWLOG and LATENCY.
	Slow   stats.SlowLog
	Events stats.Events
	Ended  atomic.Bool   // set by Close: slow commands may give up
	Large  budget.Budget // what long replies take
	hooks  hooks
	states [maxGroups]any // of the groups: see Slot
}

// Seen is what the limiters have seen of keys and their groups. Any goroutine may call it, but
// for LackedMemory.
type Seen interface {
	// Denied and Called are the keys that are denied and called most, over all workers.
	Denied(now limit.Instant) stats.SeenKeys
	Called(now limit.Instant) stats.SeenKeys
	// TakeGroups returns what was seen since the last time, in the order of the names.
	TakeGroups() []stats.SeenGroup
	// Groups are the decisions by group of keys.
	Groups() []stats.GroupCount
	// LackedMemory notes that a call of the worker about the key was refused for want of
	// memory. The goroutine of the worker calls it.
	LackedMemory(w *Worker, key []byte)
}

// Wait is a command that waits: for a timer, for a slow command that runs
// in the background, for room under a limit. Its session is not fed until it is
// finished, and what its client sent behind it waits too.
//
// Whoever wants to answer claims it first; only one can. Any goroutine may. All
// fields but state are set before the command is parked or by the one who answers.
type Wait struct {
	Client *Client
	Cmd    *Command
	Proto  int
	State  atomic.Int32
	Gone   atomic.Bool // the client is: set when the session is closed

	// What the answer consists of, valid once state is WaitAnswered: the reply, then
	// what resume writes. Decided is how a wait for room has ended, nil for other waits;
	// broken says that the client is to be closed.
	Reply   resp.Reply
	Decided *Decided
	Broken  bool
	// Failed says that the reply is an error, or has one in it, and Rejected that the command
	// was never run: see [Wait.Forbidden].
	Failed, Rejected bool
	// Looked says that it has had no effect, so that its reply waits for no disk and is
	// true whatever becomes of that.
	NoEffect bool
	// Again says that there is no answer: the command has yet to be run, and is so from
	// its first byte when the session is fed again.
	RunAgain bool
	// Kept is how many bytes the wait keeps: what [Call.NewWait] was told, what Park adds, and a
	// transaction of the session that runs exclusively. Used by the goroutine that feeds the session.
	Kept     int
	reserved int64 // what [Wait.Reserve] has put on the account
	// Args are the words of the command as far as they say what its user has to be allowed;
	// nil for a command that is not asked about again.
	Args [][]byte
	// Unbegun is closed by [Wait.Refuse]; nil for a command that does not wait for its turn in the
	// background, or has too much to undo.
	Unbegun chan struct{}
	// Slice does a part of a command that goes on in slices, and reports whether there is
	// more to do; nil for all others. It waits for nothing: its session is fed again as soon
	// as others have had their turn.
	Slice func(c *Call) (more bool)

	// Retracts: the goroutine that claimed the answer may release it. wanted says how the wait was
	// to be ended meanwhile.
	Retracts bool
	wanted   atomic.Int32

	stats.Waiting // how long the command has run

	// Resume runs when the session is fed again, on the goroutine that feeds it: for
	// an answer that changes the session. nil if there is nothing to do.
	Resume func(w *resp.Writer)
	// Render is Resume for what several commands have asked. It does what CLIENT REPLY has
	// said by itself.
	Render func(c *Call)
	// Cancel stops what was being waited for, without an answer, when the client
	// has gone away. nil if there is nothing to stop. It must not block.
	Cancel func()
	// OnTimeout writes the answer of a wait that is ended early (CLIENT UNBLOCK,
	// shutdown). nil for a wait that cannot be, because it ends soon by itself.
	OnTimeout func(st env.Store, w *resp.Writer)
	// Unanswered says that a server that stops closes the connection in place of that answer: it
	// would say that the time is over, or that nothing has come, and neither is so.
	Unanswered bool
}

// Coroutine is how a group runs a call of which nobody knows how long it takes: on a
// coroutine with a worker of its own, which goes on elsewhere if it takes long.
type Coroutine struct {
	// Do runs the call. c is of the coroutine's worker, with copies of the words. arg is what
	// RunOnCoroutine was given, and valid until c yields.
	Do func(c *Call, arg any)
	// Script is what runs, and whether it has written. It is asked once the call has yielded.
	Script func(w *Worker) (script Killable, wrote bool)
	// Again returns what runs the call that Do has run from its beginning.
	Again func(c *Call) func(c *Call)
}

// Activity is what a client does at the moment, and what is kept for it.
type Activity struct {
	Description
	Active      limit.Instant // of the last bytes
	LastCommand *Command      // nil before the first
	Blocked     bool          // a command of it waits
	Queued      int           // commands that wait for EXEC, -1 outside of MULTI
	Held        ClientMemory
}

// Group is a part of the commands: their entries, and what the group keeps of its own for
// the server, for each worker and for a client. Nobody else looks into that.
type Group struct {
	Commands []*Command
	// Needs are the parts without commands that the group shares with others, such as the
	// one that has clients wait for elements. A table has each of them once, however many of
	// its groups need it. A part has no Needs.
	Needs []*Group
	// Server makes what the group keeps for the server, and says where the group takes
	// part in what is no command of it. nil for a group that does neither.
	Server func(s *Server, slot Slot) (state any, hooks Hooks)
	// Worker makes what the group keeps for a new worker, which is used by one goroutine
	// at a time; nil if that is nothing. What the group keeps for the server is made
	// before. Its commands find it by [Scratch].
	Worker func(w *Worker, slot Slot) any
	// Figures are what the group has counted; see [Counted].
	Figures []figure.Figure
}

// Table finds commands by name. It never changes after it was made, but for the replies
// that it keeps.
type Table struct {
	groups  []Group
	Entries []*Command  // by id: containers, commands and subcommands
	Sorted  []*Command  // without subcommands, sorted by name
	names   []tableName // of top, by what each is called
	Slots   []nameSlot  // open addressing over endsHash, a power of two long
	// Remote says that commands ask a Remote, and unserved are those that cannot, by what
	// each is called here: see [NewStoreTable].
	Remote   bool
	unserved map[string]string
	vocabulary

	Info, Docs madeOnce // of top
}

// tableName is a command and what it is called.
type tableName struct {
	name string
	cmd  *Command
}

// Host is what commands may ask of the session that runs them, beyond the reply: to wait,
// to go on elsewhere, to reach the store from another goroutine. All of it is rare, since
// an interface stands between.
type Host interface {
	// Park has the client of p wait for it. Keep adds bytes, which may be negative, to what waits and
	// transactions keep, unless that exceeds maxmemory-clients: then it reports false.
	Park(p *Wait)
	Keep(bytes int64) bool
	// Offload runs f in the background, with the session parked until it returns; size says
	// how much memory its reply takes, nil that it is short.
	Offload(c *Call, size func(st env.Store) int, f func(st env.Store, w *resp.Writer))
	// Background runs do, which is the running command or what is left to do of it, on a
	// goroutine in the background.
	Background(c *Call, do func(c *Call))
	// Rerun runs a command again that has been counted, and has left its loop before it did
	// anything.
	Rerun(c *Call, cmd *Command)
	// AfterPause keeps f for the end of CLIENT PAUSE, if there is one; f is told whether to go
	// on. The caller is in the store.
	AfterPause(f func(goOn bool)) bool
	// EachWorker calls f for every worker there is, and returns since when they count. f may
	// read what is guarded by itself.
	EachWorker(f func(w *Worker)) (since limit.Instant)
	// Spawn runs f on a goroutine that the end of the server waits for.
	Spawn(f func())
	// SpawnCall runs f on a goroutine with a worker of its own that has entered the store. If
	// it is much work it waits until few of its kind run.
	SpawnCall(much bool, f func(c *Call))
	// WithStore runs f on a store of its own, for the work of a client, at a fresh instant.
	// Only for goroutines that may block.
	WithStore(client int64, f func(st env.Store))
	// Recovered notes a panic, without what it carried.
	Recovered(reason any)
	// CountError counts an error reply.
	CountError(e resp.Error, from resp.Origin)

	// Run runs the command of c, whose words are right, and counts it. Reject answers one
	// that may not run.
	Run(c *Call)
	Reject(c *Call, e resp.Error)
	// Timed runs f, which is what is left to be done of a command that has left its loop, and
	// counts the time that it takes as the command's.
	Timed(c *Call, f func(c *Call))
	// Outside runs f, which may wait for a disk, and has whoever stops the world not wait for it.
	// The caller is in the background, or else f runs at once, and has locked nothing.
	Outside(c *Call, f func())
	// Durations is how long the calls of the command with that id took that were timed, and how
	// many calls there were. ClassDurations is the same for a class of commands.
	Durations(id int) (d stats.Distribution, calls int64)
	ClassDurations(class stats.Class) stats.Distribution
	// ParkExclusive parks the client for a command, of which do is what is left to be done,
	// that is to run while nobody else is in the store. It does once Enqueue has it.
	ParkExclusive(c *Call, do func(c *Call)) *Exclusive
	Enqueue(x *Exclusive)
	// EnqueueWith is Enqueue once so many bytes are granted to the reply.
	EnqueueWith(x *Exclusive, need int64)
	// KillExclusive is SCRIPT KILL. EndExclusive ends what runs, whatever it has done, since
	// the server is to stop at once, and cuts off all clients but the one who asks.
	KillExclusive(c *Call) resp.Error
	EndExclusive(asking *Client)
	// StopWorld keeps everybody else out of the store for the rest of the batch. It returns
	// false if another does so: then the command is run again once that is over.
	StopWorld(c *Call) bool
	// Pump has the client of c sent what p gives from now on, behind the reply: it becomes a
	// replica. p is filled by who is in the store, so that it may not wait for a lock that
	// somebody holds who stops the world.
	Pump(c *Call, p transport.Pump)
	// RunOnCoroutine runs a call of which nobody knows how long it takes, with the world
	// stopped. If it takes long the client is parked. It reports whether the call is over and
	// is to be run again.
	RunOnCoroutine(c *Call, how *Coroutine, arg any) (again bool)
	// CountRejected counts a call of cmd, by a command that runs others, that is refused.
	CountRejected(c *Call, cmd *Command)

	// Pause has commands wait for d, those of halt; Unpause ends that.
	Pause(st env.Store, d time.Duration, halt uint32)
	Unpause()
	// Unblock ends the wait of a client, and reports whether there was one that can be ended.
	Unblock(cl *Client, withError bool) bool
	// Statistics are the figures of the server, and ResetStatistics begins to count again.
	Statistics() Statistics
	ResetStatistics()
	// Activity is what a client does. Any goroutine may ask. NoteCommand notes the command
	// that it runs, which would be noted behind it.
	Activity(cl *Client) Activity
	NoteCommand(cl *Client, cmd *Command)

	// CountClients returns how many clients there are, and of how many a command waits.
	CountClients() (all, blocked int64)
	// Client returns the client of that id, or nil; Clients all, in the order they came.
	Client(id int64) *Client
	Clients() []*Client
	// Post leaves a message with a client, b or the bytes of f, and returns how much memory
	// that takes. Follow does what it asks for, and Posted counts the memory, both without
	// locks. Push is all of this for one message.
	Post(cl *Client, b []byte, f *SharedFrame) (next Posted, memory int)
	Follow(cl *Client, next Posted)
	Posted(memory int)
	Push(cl *Client, frame []byte)
	// TakeMessages moves messages for the client of c into its reply.
	TakeMessages(c *Call)
}

// Hooks are where a group takes part in what is no command of it. nil is for a group that
// takes no part. Those without a note are called by the goroutine that feeds the client,
// or that has the worker.
type Hooks struct {
	// BatchEnd is called behind a batch of commands, before its input goes.
	BatchEnd func(w *Worker)
	// Limited tells the decision on a of a command of another group. One group may have it.
	Limited func(c *Call, a *decide.Ask)
	// Decided tells how a command that waited for room has ended.
	Decided func(w *Worker, db int, d *Decided, now limit.Instant)
	// Decay is called once a minute, ResetStats by CONFIG RESETSTAT, for every worker; each
	// by any goroutine.
	Decay, ResetStats func(w *Worker)

	// Intercept is asked before a command of a client with MarkQueuing runs; it reports
	// whether it has answered the command. size is how many bytes the command has. One
	// group may have it.
	Intercept func(c *Call, size int) bool
	// Rejected tells that a command of a client with MarkQueuing or MarkCaching is refused
	// before it runs. c.Cmd is nil if there is no such command.
	Rejected func(c *Call)
	// Run runs the command of a client with MarkTracking. One group may have it.
	Run func(c *Call)
	// Awaits reports whether a client that is Told has to wait before it runs what has
	// arrived; it is woken then.
	Awaits func(cl *Client) bool
	// AfterCommand is called once a command is over, its locks included, for workers that
	// say by Publishes that there is something to do.
	AfterCommand func(w *Worker)

	// Serve gives those who wait for elements what is locked now; Unlocked answers them
	// once nothing is locked any more, or drops their answers if all is abandoned. It is
	// called for workers that say so by Serves. One group may have them.
	Serve    func(c *Call)
	Unlocked func(c *Call, abandoned bool)

	// ReadsElsewhere returns what is to be called right before and right after the running
	// command reads on another goroutine; nil for nothing.
	ReadsElsewhere func(c *Call) func()
	// Proxied tells that proxy begins to act for cl on another goroutine, and Merged that it
	// is over. Transfer gives proxy what only one of them may have, and returns how many
	// bytes that takes.
	Proxied, Merged func(cl, proxy *Client)
	Transfer        func(cl, proxy *Client) (bytes int)
	// NeedsStore reports whether cmd, which may run while a script is busy, would wait for
	// what the script has locked.
	NeedsStore func(cl *Client, cmd *Command) bool

	// Reset is RESET for a client. It may do a part of what there is to do, and reports
	// whether there is more.
	Reset func(c *Call) (more bool)
	// Kept is how many bytes a client keeps in a transaction, and how many commands wait in
	// it; -1 outside of one.
	Kept func(cl *Client) (bytes, queued int)
	// Closed is called when a client is gone.
	Closed func(cl *Client)
	// Describe adds what CLIENT LIST says of a client. Any goroutine may call it.
	Describe func(cl *Client, d *Description)
	// Memory is how many bytes the group keeps for all clients. Any goroutine may call it.
	Memory func() int64
	// RulesChanged tells that a user may do something else than before. Any goroutine may
	// call it.
	RulesChanged func(u *acl.User, before *acl.Rules)
	// LimitsChanged tells of new limits. Any goroutine may call it.
	LimitsChanged func()
}

// hooks are those of all groups.
type hooks struct {
	all       []*Hooks
	batchEnd  []func(w *Worker)
	intercept func(c *Call, size int) bool
	run       func(c *Call)
	limited   func(c *Call, a *decide.Ask)
	serve     func(c *Call)
	unlocked  func(c *Call, abandoned bool)
}

// nameSlot is a place of a table of names.
type nameSlot struct {
	first, last foldedWord
	name        string   // what the command is called here, in lower case
	Cmd         *Command // nil if the slot is free
}
