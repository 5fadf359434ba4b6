package replication

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Options has the dependencies of a [Node]. All fields must be set, except Replica, Redis,
// ServeRedis and After.
type Options struct {
	Keyspace Keyspace
	Clock    Clock
	Files    Files
	Host     Host
	// Replica says that the node starts as a replica, whose keys come from a primary.
	Replica bool
	// Source is the sending side of the node. No other node may use it.
	Source *Source
	// Dial opens connections to a primary.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Settings returns the present values of the server's options. It is called often, from any
	// goroutine.
	Settings func() Settings
	// Stopwatch returns the reading of a monotonic clock. It is only used to measure durations.
	Stopwatch func() time.Duration
	// After returns a channel that receives a value after a duration. If After is nil, time.After
	// is used.
	After func(time.Duration) <-chan time.Time
	// Redis takes over the links to a Redis or Valkey. If it is nil, the node cannot follow a Redis
	// or Valkey.
	Redis RedisFollower
	// ServeRedis answers, instead of the source, a PSYNC of a replica that is not a cellserver. It
	// is called while the stream is running, and must not block. If it is nil, such replicas are
	// refused.
	ServeRedis func(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error)
	Log        *slog.Logger
}

// Settings has options of the server. The comment of each field names the option in the
// configuration.
type Settings struct {
	User, Password    string        // the values of masteruser and masterauth
	AnnounceIP        string        // the value of replica-announce-ip
	Port              int           // the value of replica-announce-port, or else the port on which the server listens
	Listens           []int         // the ports on which the server listens, whatever it announces
	Announced         bool          // the value of replica-announced
	Priority          int           // the value of replica-priority
	Timeout           time.Duration // the value of repl-timeout
	ServeStale        bool          // the value of replica-serve-stale-data
	RefuseOther       bool          // the value of repl-refuse-empty
	BacklogSize       int64         // the value of repl-backlog-size in bytes
	MinReplicas       int           // the value of min-replicas-to-write
	MinReplicasMaxLag time.Duration // the value of min-replicas-max-lag; 0 means that no replica is needed
}

// NeedsReplicas reports whether a primary refuses changes while it has too few good replicas.
func (s Settings) NeedsReplicas() bool { return s.MinReplicas > 0 && s.MinReplicasMaxLag > 0 }

// Keyspace has the methods of the replicated keyspace that a node calls. See keyspace.Keyspace.
type Keyspace interface {
	// Databases returns the number of databases.
	Databases() int
	// ApplyRecord applies all effects of a record as one change, at the instant at. If it returns
	// an error, it has applied none of them.
	ApplyRecord(record []byte, at limit.Instant) error
	// Restore sets a key in the database db to the entry e from a snapshot.
	Restore(db int, key []byte, e entry.Entry) error
	// Whole checks a state that was loaded. It returns an error if a part of it is missing.
	Whole() error
	// Empty removes all keys.
	Empty()
	// Exclusively runs f while no other goroutine uses the keyspace.
	Exclusively(f func())
	// ResetInstants sets the latest instant that the keyspace has seen to at, which may be earlier
	// than before. It is called inside Exclusively.
	ResetInstants(at limit.Instant)
	// SweepTo sets the instant up to which expired keys are removed. Keys that expire after at
	// are not removed.
	SweepTo(at limit.Instant)
	// Stats returns statistics such as the number of keys.
	Stats() keyspace.Stats
}

// Clock is the clock of a node. It can follow the clock of a primary.
type Clock interface {
	Now() limit.Instant
	// Set sets the clock to at, which may be earlier than the present time. The caller excludes
	// concurrent readers.
	Set(at limit.Instant)
	// Follow records that the primary's clock showed at when the primary sent the message that
	// has just arrived.
	Follow(at limit.Instant)
	// ForgetPrimary discards what the clock has learned from Follow, because later instants come
	// from the clock of another primary.
	ForgetPrimary()
	// StopFollowing makes the clock run by itself again.
	StopFollowing()
}

// Log is the log that records the effects of a node. See persistence.Log.
type Log interface {
	keyspace.Journal
	// SetTap makes the log pass everything that it writes from now on to t; a nil t gets nothing.
	// The parameter from is the position of the log after which t gets everything.
	SetTap(t persistence.Tap) (from uint64)
	// Await writes everything up to position, unless it is written already or another goroutine is
	// writing it. If the outcome is Pending, w, unless it is nil, is woken later.
	Await(position uint64, w persistence.Waker) persistence.Outcome
	// NoteClock writes a clock record, and everything that was appended before.
	NoteClock() error
	// NoteOrigin records that the state, including everything that was appended before, comes
	// from o.
	NoteOrigin(o *persistence.Origin) error
	// Position returns the position after everything that was appended to the log.
	Position() uint64
	// Synced returns the position before which everything is durable.
	Synced() uint64
}

// Files manages the files of a node.
type Files interface {
	// Log returns the log of all effects, and creates it if there is none. It waits for exclusive
	// use of the keyspace, so it must not be called by a goroutine that uses the keyspace.
	Log() (Log, error)
	// Origin returns the primary, history and offset that the files have recorded at the start.
	// It is nil if there was no such record, or if something was changed since, except for the
	// removal of keys that had expired KeepExpired before the last instant in the files.
	Origin() *persistence.Origin
	// DataSet returns the ID of the keyspace's data set, "" while it is unknown, as in files of
	// older versions. DataSet and SetDataSet do not block.
	DataSet() string
	// Restored reports whether an operator has restored the data set from a backup in the files
	// of this server. It does not block, and returns false after SetDataSet.
	Restored() bool
	// SetDataSet sets the ID of the keyspace's data set.
	SetDataSet(id string)
	// Suspend is called when a full resynchronization begins. The files keep the old state, and
	// no snapshot may begin. When Suspend returns, an earlier Rewrite has ended.
	Suspend()
	// Rewrite begins to write the state of a full resynchronization, which is complete now, to
	// the files. When Rewrite returns, the log accepts effects. finish blocks until the files
	// have the state and all effects since. If ctx ends before, the files keep their old state
	// until Suspend is called.
	Rewrite() (finish func(ctx context.Context) error)
}

// RedisFollower follows a Redis or Valkey for a node. See redis.Follower.
type RedisFollower interface {
	// Follow replicates over conn until the connection or ctx ends, and returns the reason. in
	// reads from conn, and reply is the answer of the Redis to PSYNC. Follow calls
	// [Node.RedisBegins] before it stores a complete state, and [Node.RedisWhole] when all of
	// that state has arrived. If the state has no key, it calls [Node.RedisEmpty] first.
	Follow(ctx context.Context, conn net.Conn, in *bufio.Reader, reply string) error
	// Current returns the replication ID of the followed Redis, "" if there is none, and the
	// offset that was reached. settled says that everything before offset is stored. Any
	// goroutine may call it.
	Current() (replid string, offset int64, settled bool)
	// Forget makes the next link begin with a full resynchronization. It is not called during
	// Follow.
	Forget()
}

// Host is the part of the server that a change of the role affects. The methods do not block.
type Host interface {
	// SetReadOnly, SetMasterDown, SetNoReplicas and SetLoading set or clear a reason for which
	// the server refuses commands.
	SetReadOnly(on bool)
	SetMasterDown(on bool)
	// SetNoReplicas makes the server refuse changes while [Node.EnoughReplicas] returns false.
	SetNoReplicas(on bool)
	SetLoading(on bool)
	// SetPrimary sets the address of the primary that the node follows. If both parameters are
	// "", the node is a primary.
	SetPrimary(host, port string)
	// PauseWrites postpones commands that may write, until Resume is called.
	PauseWrites()
	Resume()
	// Unblock unblocks, with an -UNBLOCKED error, all blocked clients that only a primary would
	// serve.
	Unblock()
}

// reach is the time by which the effects of a record may be later than this replica's clock,
// rounded up. The clock is behind the primary's by the shortest delay of a message. When
// a record is appended to the log, a clock record is appended with it, unless an earlier clock
// record covers this instant.
const reach = 250 * time.Millisecond
