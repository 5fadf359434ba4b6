package commands

import (
	"crypto/sha256"
	"time"

	"github.com/cellserver/cellserver/resp"
)

// Limits are the settings that sessions consult. They are replaced as a whole by
// CONFIG SET, so that a batch sees one state of them.
type Limits struct {
	MaxClients int
	// MaxPerAddress is how many of them may come from one address; 0 is no bound.
	MaxPerAddress int
	Databases     int
	ProtectedMode bool
	// Password is requirepass; "" lets everybody in.
	Password string
	// Idle closes a client that has sent nothing for so long; 0 never does.
	Idle time.Duration
	// Partial closes a client whose unfinished command is older than this.
	Partial time.Duration
	// PreAuth closes a client that has not authenticated so long after it came.
	PreAuth time.Duration
	// Frame and FrameUnauth bound commands, with and without authentication.
	Frame, FrameUnauth resp.Limits
	// LogMaxEntries and MaxMembers are the caps of SW LOG and CC.
	LogMaxEntries, MaxMembers int64
	// MaxElements is the most elements of a hash, sorted set, list or set. The store
	// keeps to it; here it is for what is said.
	MaxElements int64
	// Busy is how long a script may keep others waiting before they are told; 0 is
	// for ever.
	Busy time.Duration
	// ClientMemory is maxmemory-clients in bytes; 0 is no bound.
	ClientMemory int64
	// TrackingKeys is the most keys of the invalidation table; 0 is no bound.
	TrackingKeys int64
	// Output bounds what others leave for a client: messages to a subscriber.
	Output OutputLimit

	passwordHash [sha256.Size]byte
}

// DefaultLimits returns the limits of a server without a configuration.
func DefaultLimits() Limits {
	return Limits{
		MaxClients:    10000,
		Databases:     16,
		ProtectedMode: true,
		Partial:       30 * time.Second,
		PreAuth:       10 * time.Second,
		Frame:         resp.DefaultLimits(),
		FrameUnauth:   resp.DefaultLimits().PreAuth(),
		LogMaxEntries: 100000,
		MaxMembers:    100000,
		MaxElements:   100000,
		Busy:          5 * time.Second,
		TrackingKeys:  1_000_000,
		Output:        OutputLimit{Hard: 32 << 20, Soft: 8 << 20, For: time.Minute},
	}
}

// What a turn and a client may use. These are not options: a larger turn would
// let one client delay another, a smaller one would cost throughput.
const (
	turnBytes    = 64 << 10 // of replies, after which others have their turn
	turnCommands = 1024
	maxReply     = 64 << 20 // the longest single reply, e.g. of KEYS
	unauthBytes  = 16 << 10 // in and out before authentication
	maxKey       = 16 << 10 // the longest key
)

// Limits returns the limits in force.
func (e *Server) Limits() *Limits { return e.limits.Load() }

// SetLimits puts new limits in force, for live clients too.
func (e *Engine) SetLimits(l Limits) {
	l.passwordHash = sha256.Sum256([]byte(l.Password))
	e.limits.Store(&l)
	e.leaveToShrink()
}

func (e *Server) passwordSet() bool { return e.Limits().Password != "" }
