package env

import (
	"time"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Limits are the settings that sessions use. CONFIG SET replaces them as a whole, so a batch sees
// one consistent set.
type Limits struct {
	MaxClients int
	// MaxPerAddress bounds the clients from one address; 0 is no bound.
	MaxPerAddress int
	Databases     int
	ProtectedMode bool
	// Password is requirepass, the password of the user default; "" admits every client.
	Password string
	// CertificateUser says which part of a client's certificate is the name of its user: CN or URI.
	// Any other value means none.
	CertificateUser string
	// Refusals is how many entries ACL LOG keeps.
	Refusals int
	// AllChannels says that new users may use all channels.
	AllChannels bool
	// EveryKey says that commands which reach keys other than their arguments, such as KEYS and
	// FLUSHALL, need a user with permission to read and write every key.
	EveryKey bool
	// Idle closes a client that has sent nothing for this long; 0 never does.
	Idle time.Duration
	// ReplicaTimeout is Idle for a replica (repl-timeout).
	ReplicaTimeout time.Duration
	// Partial closes a client whose unfinished command is older than this.
	Partial time.Duration
	// PreAuth closes a client that has not authenticated within this time after it connected.
	PreAuth time.Duration
	// Frame and FrameUnauth bound commands, with and without authentication.
	Frame, FrameUnauth resp.Limits
	// LogMaxEntries and MaxMembers bound the entries of SW LOG and the members of CC.
	LogMaxEntries, MaxMembers int64
	// MaxElements bounds the elements of a hash, sorted set, list or set. The store enforces it;
	// here it is for texts.
	MaxElements int64
	// Busy is how long a script may block the store before other clients get a BUSY error; 0 is
	// without end.
	Busy time.Duration
	// NearLimit is the percentage of a limit in use from which an allowed call counts as near the
	// limit.
	NearLimit int
	// ClientMemory is maxmemory-clients in bytes; 0 is no bound.
	ClientMemory int64
	// TrackingKeys bounds the keys of the invalidation table; 0 is no bound.
	TrackingKeys int64
	// Output bounds the messages that are queued for a subscriber.
	Output OutputLimit
	// Observing configures what is recorded about calls.
	Observing stats.Observing
}

// DefaultLimits returns the limits of a server without a configuration.
func DefaultLimits() Limits {
	return Limits{
		MaxClients:     10000,
		Databases:      16,
		ProtectedMode:  true,
		EveryKey:       true,
		Refusals:       128,
		Partial:        30 * time.Second,
		ReplicaTimeout: time.Minute,
		PreAuth:        10 * time.Second,
		Frame:          resp.DefaultLimits(),
		FrameUnauth:    resp.DefaultLimits().PreAuth(),
		LogMaxEntries:  100000,
		MaxMembers:     100000,
		MaxElements:    100000,
		Busy:           5 * time.Second,
		TrackingKeys:   1_000_000,
		Output:         OutputLimit{Hard: 32 << 20, Soft: 8 << 20, For: time.Minute},
		Observing:      stats.Observing{SlowerThan: 10 * time.Millisecond, SlowEntries: 128, Histograms: true, Percentiles: []float64{50, 99, 99.9}},
	}
}

// OutputLimit bounds the bytes that are queued for a client which others write to: the client is
// disconnected if they exceed Hard, or if they exceed Soft for longer than For. 0 is no bound.
type OutputLimit struct {
	Hard, Soft int
	For        time.Duration
}

// MayBeOver reports whether size has reached one of the bounds.
func (l *OutputLimit) MayBeOver(size int) bool {
	return l.Soft > 0 && size >= l.Soft || l.Hard > 0 && size >= l.Hard
}
