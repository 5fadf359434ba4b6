package env

import (
	"time"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

// RateLimitService has the options of Envoy's rate limit service. The zero value has the defaults of
// envoyproxy/ratelimit.
type RateLimitService struct {
	// Together is true for "rls-charge together". Shadow, Quota and Metadata are rls-shadow, rls-quota and
	// rls-metadata.
	Together, Shadow, Quota, Metadata bool
	// Headers are the names of the header fields of answers: limit, remaining and reset. They are all "" if answers
	// have no such fields.
	Headers [3]string
	// LimitsHeaders says that answers for limits of Limitador have header fields.
	LimitsHeaders bool
}

// Limits are the settings that sessions use. CONFIG SET replaces the whole struct and never changes
// its fields, so a batch of commands sees one consistent set.
type Limits struct {
	MaxClients int
	// MaxPerAddress is the maximum number of clients from one address; 0 means no maximum.
	MaxPerAddress int
	Databases     int
	ProtectedMode bool
	// Password is requirepass, the password of the user default; "" means that it is not set.
	Password string
	// CertificateUser says which field of a client's certificate contains the name of its user:
	// "CN" or "URI". With any other value, certificates do not select users.
	CertificateUser string
	// Refusals is the maximum number of entries in ACL LOG.
	Refusals int
	// AllChannels says that new users may use all channels (acl-pubsub-default).
	AllChannels bool
	// EveryKey says that a command which shows or deletes keys that are not among its arguments,
	// such as KEYS and FLUSHALL, needs a user with permission to read and write every key.
	EveryKey bool
	// Idle is the time after which a client that has sent nothing is closed; 0 means never. It does
	// not apply to blocked clients, subscribers and replicas.
	Idle time.Duration
	// ReplicaTimeout is the time after which a replica that has sent nothing is closed
	// (repl-timeout); 0 means never.
	ReplicaTimeout time.Duration
	// Partial is the maximum age of an unfinished command: a client that does not complete it in
	// time is closed.
	Partial time.Duration
	// PreAuth is the time after connecting within which a client must authenticate. After it the
	// client is closed.
	PreAuth time.Duration
	// Frame bounds the size of commands of clients that have authenticated, and FrameUnauth the
	// size of commands of all other clients.
	Frame, FrameUnauth resp.Limits
	// LogMaxEntries is the maximum number of entries of a sliding-window log (SW LOG). MaxMembers
	// is the maximum number of leases of a concurrency limiter (CC).
	LogMaxEntries, MaxMembers int64
	// IDTTL is the time for which a call with the option ID is remembered. IDsPerKey is the maximum
	// number of such calls that a key remembers. ReservesPerKey is the maximum number of live
	// reservations of a key.
	IDTTL                     time.Duration
	IDsPerKey, ReservesPerKey uint32
	// MaxElements is the maximum number of elements of a hash, sorted set, list or set. The store
	// enforces it; the texts of errors show this value.
	MaxElements int64
	// Busy is the time for which a script may block the store before other clients get a BUSY
	// error; 0 means that they never get one.
	Busy time.Duration
	// Service has the options of Envoy's rate limit service.
	Service RateLimitService
	// NearLimit is a percentage: an allowed call counts as near its limit if more than that part of
	// the limit is in use after it.
	NearLimit int
	// ClientMemory is maxmemory-clients in bytes; 0 means no bound.
	ClientMemory int64
	// TrackingKeys is the maximum number of keys in the invalidation table of client-side caching;
	// 0 means no maximum.
	TrackingKeys int64
	// Output bounds the messages that are queued for one client.
	Output OutputLimit
	// Observing says what is recorded about calls: durations, slow calls, latency.
	Observing stats.Observing
}

// DefaultLimits returns the limits of a server that has no configuration.
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
		IDTTL:          time.Minute,
		IDsPerKey:      10000,
		ReservesPerKey: 1000,
		MaxElements:    100000,
		Busy:           5 * time.Second,
		TrackingKeys:   1_000_000,
		Output:         OutputLimit{Hard: 32 << 20, Soft: 8 << 20, For: time.Minute},
		Observing:      stats.Observing{SlowerThan: 10 * time.Millisecond, SlowEntries: 128, Histograms: true, Percentiles: []float64{50, 99, 99.9}},
	}
}

// OutputLimit bounds the messages that other clients write to a client, in bytes. The client is
// disconnected if the size of its queued messages reaches Hard, or is at least Soft for longer than
// For. A bound of 0 means none.
type OutputLimit struct {
	Hard, Soft int
	For        time.Duration
}

// MayBeOver reports whether size, in bytes, has reached Hard or Soft. It does not check for how long
// Soft has been reached.
func (l *OutputLimit) MayBeOver(size int) bool {
	return l.Soft > 0 && size >= l.Soft || l.Hard > 0 && size >= l.Hard
}
