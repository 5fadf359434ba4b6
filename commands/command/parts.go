package command

// This file has the small types that those of types.go are made of.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// Identity is what a client calls itself and its library. It is replaced, never changed.
type Identity struct{ Name, LibName, LibVer string }

// Mark is a set of what is so rare of a client that commands ask for all of it at once.
type Mark uint8

const (
	// MarkQueuing says that a group looks at each command before it runs: see Hooks.Intercept.
	MarkQueuing Mark = 1 << iota
	// MarkListening says that the client has subscriptions.
	MarkListening
	// MarkTracking says that a group runs the commands: see Hooks.Run.
	MarkTracking
	// MarkCaching says that a group is told of commands that are refused: see Hooks.Rejected.
	MarkCaching
	// MarkMonitoring says that the client is sent all commands: it may not use keys.
	MarkMonitoring
	// MarkReplica says that the client is sent the stream of a replica: it may not use keys.
	MarkReplica
	// MarkPrimary says that the commands are those of the primary that is followed: neither the
	// role of this server nor a pause keeps them from running.
	MarkPrimary
)

// ReplyMode is the state of CLIENT REPLY.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	ReplyOn ReplyMode = iota
	ReplyOff
	ReplySkipNext // CLIENT REPLY SKIP itself is being answered with silence
	replySkip     // the command after it is
)

// Logins counts attempts to log in that fail, by address. Any goroutine may call it.
type Logins interface {
	// Attempt says whether and when an attempt of an address may be answered by whether the
	// password is right.
	Attempt(address string, now limit.Instant) Attempt
	// Judged notes how an attempt has ended that was not refused. byPassword is whether the user
	// needs a password.
	Judged(a Attempt, now limit.Instant, ok, byPassword bool)
	// Dropped gives back what an attempt has reserved that is not answered.
	Dropped(a Attempt, now limit.Instant)
}

// Attempt is an attempt to log in, as [Logins] lets it.
type Attempt struct {
	// Source is the address, or a network that counts as one.
	Source string
	// Wait is after how long the attempt may be answered, 0 for at once.
	Wait time.Duration
	// Refused says that there are too many before it: the password is not looked at.
	Refused bool
	// Together says that the attempt counts among those of all addresses, and not only of its own.
	Together bool
}

// Killable is what runs within an exclusive command and can be ended between two steps.
// Any goroutine may call it.
type Killable interface {
	Kill(reason string)
	// Name is the SHA-1 of the script.
	Name() string
}

// Slot is the place of what a group keeps, in the server, its workers and its clients.
type Slot int

// maxGroups is how many groups a table may have, with the parts that they need.
const maxGroups = 24

// madeOnce is a reply that is the same for everybody, by protocol. It is made when it is
// first asked for: what is to be said of all commands takes milliseconds, and clients of
// some libraries ask for it whenever they connect.
type madeOnce [2]struct {
	once sync.Once
	text []byte
}

// Decided is the decision on a command that has waited for room under a key.
type Decided struct {
	Key      []byte
	Decision limit.Decision
	// Policy counts the answer, nil for a call of no policy.
	Policy *policy.Counts
}

// Plan is what a call may do that runs other commands.
type Plan struct {
	Long     bool // nobody knows how long it takes
	KeysOnly bool // it touches no other keys than those it names
	Writes   bool // it may change something
	AllowOOM bool // it may run when memory is full
}

// clientState is what one group keeps for a client. Most clients have none, and few have
// more than two.
type clientState struct {
	slot  Slot
	state any
}

// vocabulary is where rules look names up: a file of users names many.
type vocabulary struct {
	commands   map[string]int
	categories map[string][]int
}

// clientParts are what few clients have.
type clientParts struct {
	Replica atomic.Bool                   // it is sent a stream: see Host.Pump
	Primary bool                          // the server has called it, to follow it; never changes
	states  atomic.Pointer[[]clientState] // of the groups: see Slot
}
