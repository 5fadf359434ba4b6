package env

import (
	"time"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// Limits are the settings that sessions consult. They are replaced as a whole by
// CONFIG SET, so that a batch sees one state of them.
type Limits struct {
	MaxClients int
	// MaxPerAddress is how many of them may come from one address; 0 is no bound.
	MaxPerAddress int
	Databases     int
	ProtectedMode bool
	// Password is requirepass, which is that of the user default; "" lets everybody in.
	Password string
	// CertificateUser says what of a client's certificate is the name of its user: CN or
	// URI; otherwise nothing is.
	CertificateUser string
	// Refusals is how many entries ACL LOG keeps.
	Refusals int
	// AllChannels says that new users may use all channels.
	AllChannels bool
	// EveryKey has commands that reach keys which they do not name, such as KEYS and FLUSHALL,
	// need a user who may read and write every key.
	EveryKey bool
	// Idle closes a client that has sent nothing for so long; 0 never does.
	Idle time.Duration
	// ReplicaTimeout is Idle for a replica (repl-timeout).
	ReplicaTimeout time.Duration
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
	// NearLimit is from which percentage of a limit in use an allowed call is near it.
	NearLimit int
	// ClientMemory is maxmemory-clients in bytes; 0 is no bound.
	ClientMemory int64
	// TrackingKeys is the most keys of the invalidation table; 0 is no bound.
	TrackingKeys int64
	// Output bounds what others leave for a client: messages to a subscriber.
	Output OutputLimit
	// Observing is what is kept about calls.
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

// OutputLimit bounds what waits for a client that others write to: beyond Hard bytes
// it is cut off at once, beyond Soft after it has been so for longer than For. A
// bound of 0 is none.
type OutputLimit struct {
	Hard, Soft int
	For        time.Duration
}

// MayBeOver reports whether size is beyond one of the bounds.
func (l *OutputLimit) MayBeOver(size int) bool {
	return l.Soft > 0 && size >= l.Soft || l.Hard > 0 && size >= l.Hard
}
