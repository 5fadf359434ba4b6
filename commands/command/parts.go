package command

// This file has the small types that the types of types.go consist of.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Identity has the names that a client gave for itself and its library. It is replaced, never
// modified.
type Identity struct{ Name, LibName, LibVer string }

// Mark is a set of rare states of a client, which commands test with one comparison.
type Mark uint8

const (
	// MarkQueuing says that a group inspects each command before it runs: see Hooks.Intercept.
	MarkQueuing Mark = 1 << iota
	// MarkListening says that the client has subscriptions.
	MarkListening
	// MarkTracking says that a group runs the commands instead of dispatch: see Hooks.Run.
	MarkTracking
	// MarkCaching says that groups are notified of refused commands: see Hooks.Rejected.
	MarkCaching
	// MarkMonitoring says that the client receives all commands (MONITOR): it may not use keys.
	MarkMonitoring
	// MarkReplica says that the client receives the replication stream: it may not use keys.
	MarkReplica
	// MarkPrimary says that the commands come from the primary that this server follows: neither
	// the role of this server nor a pause stops them.
	MarkPrimary
)

// ReplyMode is the state of CLIENT REPLY.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	ReplyOn ReplyMode = iota
	ReplyOff
	ReplySkipNext // CLIENT REPLY SKIP itself gets no reply
	replySkip     // the command after it gets no reply
)

// Logins limits failed login attempts by address. Any goroutine may call it.
type Logins interface {
	// Attempt says whether, and after which delay, the server may tell an address whether its
	// password is right.
	Attempt(address string, now limit.Instant) Attempt
	// Judged records the result of an attempt that was not refused. byPassword is whether the user
	// needs a password.
	Judged(a Attempt, now limit.Instant, ok, byPassword bool)
	// Dropped releases what an attempt has reserved that will not be answered.
	Dropped(a Attempt, now limit.Instant)
}

// Attempt is a login attempt, as admitted by [Logins].
type Attempt struct {
	// Source is the client's address, or the network that is counted as one address.
	Source string
	// Wait is the delay before the attempt may be answered, 0 for none.
	Wait time.Duration
	// Refused says that there were too many attempts before: the password is not checked.
	Refused bool
	// Together says that the attempt is also counted with those of all other addresses.
	Together bool
}

// Killable is a script of an exclusive command, which can be ended between two steps. Any goroutine
// may call its methods.
type Killable interface {
	Kill(reason string)
	// Name returns the SHA-1 of the script.
	Name() string
}

// Slot is the index of a group's state in the server, its workers and its clients.
type Slot int

// maxGroups bounds the groups of a table, including the parts that they need.
const maxGroups = 24

// madeOnce is a reply that is the same for all clients, for each protocol. It is created when it is
// first requested: the description of all commands takes milliseconds, and some client libraries
// request it at each connect.
type madeOnce [2]struct {
	once sync.Once
	text []byte
}

// Decided is the decision on a command that has waited for room under a limit.
type Decided struct {
	Key      []byte
	Decision limit.Decision
	// Counter counts the answer; nil for a call that has no counter of its own.
	Counter interface{ Answered(denied bool) }
}

// Plan describes what a call that runs other commands may do.
type Plan struct {
	Long     bool // its duration is unknown
	KeysOnly bool // it accesses only the keys that it names
	Writes   bool // it may change something
	AllowOOM bool // it may run when memory is full
}

// clientState is the state that one group keeps for a client. Most clients have none, and few have
// more than two.
type clientState struct {
	slot  Slot
	state any
}

// vocabulary indexes commands and categories by name for ACL rules: a file of users names many.
type vocabulary struct {
	commands   map[string]int
	categories map[string][]int
}

// clientParts are properties that few clients have.
type clientParts struct {
	Replica atomic.Bool                   // it receives a stream: see Host.Pump
	Primary bool                          // this server has opened the connection, to follow a primary; never changes
	states  atomic.Pointer[[]clientState] // of the groups: see Slot
}
