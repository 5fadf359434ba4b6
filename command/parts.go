package command

// This file has the small types that the types in types.go use.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Identity has the names that a client gave for itself and its library, and the version of the library. An Identity in use is
// replaced, never modified, so any goroutine may read it.
type Identity struct{ Name, LibName, LibVer string }

// Mark is a set of rare states of a client. It is a bit set, so that one comparison tests for several
// states.
type Mark uint8

const (
	// MarkQueuing says that a group inspects each command of the client before it runs: see
	// [Hooks].Intercept.
	MarkQueuing Mark = 1 << iota
	// MarkListening says that the client has subscriptions.
	MarkListening
	// MarkTracking says that a group runs the client's commands instead of their own Run: see
	// [Hooks].Run.
	MarkTracking
	// MarkCaching says that groups are notified of refused commands of the client: see
	// [Hooks].Rejected.
	MarkCaching
	// MarkMonitoring says that the client receives the commands of all clients (MONITOR), except
	// administrative ones. It may not use keys.
	MarkMonitoring
	// MarkReplica says that the client receives the replication stream. It may not use keys.
	MarkReplica
	// MarkPrimary says that the client is the primary that this server follows. Its commands run in
	// spite of this server's role and of a pause.
	MarkPrimary
)

// ReplyMode is the mode that CLIENT REPLY sets for a client.
type ReplyMode uint8

// These are the modes of CLIENT REPLY.
const (
	ReplyOn ReplyMode = iota
	ReplyOff
	ReplySkipNext // CLIENT REPLY SKIP is running: its own reply is suppressed
	replySkip     // the command after CLIENT REPLY SKIP is running: its reply is suppressed
)

// Logins limits failed login attempts by address. Any goroutine may call its methods.
type Logins interface {
	// Attempt admits or refuses a login attempt from an address, before the password is checked.
	// The result says whether the attempt is refused, and after which delay the server may answer
	// it. The caller then calls Judged or Dropped.
	Attempt(address string, now limit.Instant) Attempt
	// Judged records the result of an attempt that was not refused: ok if the password was right.
	// byPassword says that the user needs a password.
	Judged(a Attempt, now limit.Instant, ok, byPassword bool)
	// Dropped takes back what Attempt has charged for an attempt that will not be answered.
	Dropped(a Attempt, now limit.Instant)
}

// Attempt is the answer of [Logins] to a login attempt.
type Attempt struct {
	// Source is the client's address, or the network that is counted as one address.
	Source string
	// Wait is the delay before the attempt may be answered, 0 for none.
	Wait time.Duration
	// Refused says that there were too many failed attempts before: the password must not be
	// checked.
	Refused bool
	// Together says that the attempt also counts against the limit for all addresses together.
	Together bool
}

// Killable is a script of an exclusive command. Kill ends the script before its next instruction,
// with an error that contains reason. Any goroutine may call the methods.
type Killable interface {
	Kill(reason string)
	// Name returns the SHA-1 of the script.
	Name() string
}

// Slot is the index of a group in its table, and so of the group's state in the server, in workers
// and in clients.
type Slot int

// maxGroups is the maximum number of groups in a table, including the parts that they need.
const maxGroups = 24

// madeOnce caches a reply that is the same for all clients: one text for RESP2 and one for RESP3. A
// text is created when it is first requested: the description of all commands takes milliseconds,
// and some client libraries request it at each connect.
type madeOnce [2]struct {
	once sync.Once
	text []byte
}

// Decided is the decision on a command that has waited for room under a limit.
type Decided struct {
	Key      []byte
	Decision limit.Decision
	// Counter counts the decision; nil for a call that has no counter of its own.
	Counter interface{ Answered(denied bool) }
}

// Plan describes what a call that runs other commands may do, for the checks before it runs.
type Plan struct {
	Long     bool // the duration of the call is unknown
	KeysOnly bool // the call accesses only the keys that it names
	Writes   bool // the call may change data
	AllowOOM bool // the call may run when memory is full
}

// clientState is the state that the group of slot keeps for a client. Most clients have none, and
// few have more than two.
type clientState struct {
	slot  Slot
	state any
}

// vocabulary maps the names of commands and categories to the IDs of commands, for ACL rules. It is
// an index because a file of users names many commands.
type vocabulary struct {
	commands   map[string]int
	categories map[string][]int
}

// clientParts are properties that few clients have.
type clientParts struct {
	Replica atomic.Bool                   // the client receives the replication stream: see [Messages].Pump
	Primary bool                          // this server has opened the connection, to follow a primary; never changes
	states  atomic.Pointer[[]clientState] // the state that each group keeps for the client: see Slot
}
