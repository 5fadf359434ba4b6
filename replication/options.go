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

// Options are the dependencies of a [Node]. All fields must be set but Replica, Redis, ServeRedis
// and After.
type Options struct {
	Keyspace Keyspace
	Clock    Clock
	Files    Files
	Host     Host
	// Replica says that the node starts as a replica, whose keys are those of a primary.
	Replica bool
	// Source is the sending side of the node, which no other node uses.
	Source *Source
	// Dial opens connections to a primary.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Settings returns the present values of the server's options. It is called often.
	Settings func() Settings
	// Stopwatch returns a monotonic reading, which is only used to measure durations.
	Stopwatch func() time.Duration
	// After is time.After if nil. Tests may set another.
	After func(time.Duration) <-chan time.Time
	// Redis takes over connections to a Redis or Valkey. If it is nil, the node can only follow
	// servers of its own kind.
	Redis RedisFollower
	// ServeRedis answers a PSYNC of a replica that is not a server of this kind, instead of the
	// source. It is called when the stream runs, and must not block. If it is nil, such replicas
	// are refused.
	ServeRedis func(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error)
	Log        *slog.Logger
}

// Settings are options of the server. Each field names its option in the configuration.
type Settings struct {
	User, Password    string        // masteruser, masterauth
	AnnounceIP        string        // replica-announce-ip
	Port              int           // replica-announce-port, or else the listening port
	Listens           []int         // the ports that the server listens on, whatever it announces
	Announced         bool          // replica-announced
	Priority          int           // replica-priority
	Timeout           time.Duration // repl-timeout
	ServeStale        bool          // replica-serve-stale-data
	RefuseOther       bool          // repl-refuse-empty
	BacklogSize       int64         // repl-backlog-size
	MinReplicas       int           // min-replicas-to-write
	MinReplicasMaxLag time.Duration // min-replicas-max-lag; if 0, no replica is needed
}

// NeedsReplicas reports whether a primary refuses changes while it has too few good replicas.
func (s Settings) NeedsReplicas() bool { return s.MinReplicas > 0 && s.MinReplicasMaxLag > 0 }

// Keyspace is what a node needs of the keyspace that it replicates. The methods are those of
// keyspace.Keyspace.
type Keyspace interface {
	// Databases returns the number of databases.
	Databases() int
	// ApplyRecord applies all effects of a record as one change. If it returns an error, it has
	// applied none of them.
	ApplyRecord(record []byte, at limit.Instant) error
	// Restore sets a key to its value in a snapshot.
	Restore(db int, key []byte, e entry.Entry) error
	// Whole checks a state that was loaded. It returns an error if something is missing.
	Whole() error
	// Empty removes all keys.
	Empty()
	// Exclusively runs f while no other goroutine uses the keyspace.
	Exclusively(f func())
	// ResetInstants makes at the latest instant of all keys. It is called inside Alone.
	ResetInstants(at limit.Instant)
	// SweepTo sets an instant. Keys that expire after it are not removed.
	SweepTo(at limit.Instant)
	// Stats returns statistics such as the number of keys.
	Stats() keyspace.Stats
}

// Clock is the clock of a node. It can follow the clock of a primary.
type Clock interface {
	Now() limit.Instant
	// Set sets the clock, possibly to an earlier instant. The caller excludes concurrent readers.
	Set(at limit.Instant)
	// Follow records that the primary's clock showed at when it sent the message that has just
	// arrived.
	Follow(at limit.Instant)
	// ForgetPrimary discards what the clock has learned from Follow, because the instants that follow
	// come from another primary's clock.
	ForgetPrimary()
	// StopFollowing makes the clock run by itself again.
	StopFollowing()
}

// Log is the log that records the effects of a node. The methods are those of persistence.Log.
type Log interface {
	keyspace.Journal
	// SetTap passes everything behind position from to t. If t is nil, it passes nothing on.
	SetTap(t persistence.Tap) (from uint64)
	// Await writes everything up to a position, unless that was done or another goroutine does
	// it.
	Await(position uint64, w persistence.Waker) persistence.Outcome
	// NoteClock writes a clock record, and everything that was appended before.
	NoteClock() error
	// NoteOrigin records that the state, with everything that was appended before, is that of o.
	NoteOrigin(o *persistence.Origin) error
	// Position returns the position behind everything that was appended.
	Position() uint64
	// Synced returns the position up to which everything is durable.
	Synced() uint64
}

// Files manages the files of a node.
type Files interface {
	// Log returns the log of all effects, and creates it if there is none. It waits for exclusive
	// use of the keyspace, so a goroutine that uses the keyspace must not call it.
	Log() (Log, error)
	// Origin returns the primary, history and offset that the files recorded at the start. It is
	// nil if there was no such record, or something was changed since. The only keys that were
	// removed since had expired KeepExpired before the last instant that the files record.
	Origin() *persistence.Origin
	// DataSet returns the ID of the keyspace's data set. It is empty while it is unknown, as in
	// files of older versions. Neither DataSet nor SetDataSet blocks.
	DataSet() string
	// Restored reports whether an operator has restored that data set from a backup in this
	// server's files. It does not block, and is false after SetDataSet.
	Restored() bool
	// SetDataSet sets the ID of the keyspace's data set.
	SetDataSet(id string)
	// Suspend is called when a full resynchronization begins. The files keep the old state, and
	// no snapshot may begin. What Rewrite began has ended when Suspend returns.
	Suspend()
	// Rewrite begins to write the state of a full resynchronization, which is complete now, to
	// the files. The log accepts effects when it returns. finish returns when the files have the
	// state and all effects since. If ctx ends before, the files keep their old state until
	// Suspend is called.
	Rewrite() (finish func(ctx context.Context) error)
}

// RedisFollower follows a Redis or Valkey for a node. The methods are those of redis.Follower.
type RedisFollower interface {
	// Follow replicates over conn, whose answer to PSYNC is reply, until the connection or ctx
	// ends. It calls [Node.RedisBegins] before it stores a complete state and [Node.RedisWhole]
	// when all of it has arrived. If that state has no key, it calls [Node.RedisEmpty] first.
	Follow(ctx context.Context, conn net.Conn, in *bufio.Reader, reply string) error
	// Current returns the history that was copied, or "", and the offset that was reached.
	// settled reports whether everything before that offset is stored.
	Current() (replid string, offset int64, settled bool)
	// Forget makes the next link begin with a full copy. It is not called during Follow.
	Forget()
}

// Host is the server's side of a role change. The methods do not block.
type Host interface {
	// SetReadOnly, SetMasterDown, SetNoReplicas and SetLoading set the reasons for which the
	// server refuses commands.
	SetReadOnly(on bool)
	SetMasterDown(on bool)
	// SetNoReplicas refuses changes while [Node.EnoughReplicas] returns false.
	SetNoReplicas(on bool)
	SetLoading(on bool)
	// SetPrimary sets the address of the primary that the node follows. Two empty strings mean
	// that the node is a primary.
	SetPrimary(host, port string)
	// PauseWrites postpones commands that may write until Resume.
	PauseWrites()
	Resume()
	// Unblock unblocks all blocked clients that only a primary would serve, with -UNBLOCKED.
	Unblock()
}

// reach is by how much a record's effects may be later than this replica's clock, rounded up. The
// clock is behind the primary's by the least delay of a message. A record is appended with a
// clock record of its own, unless an earlier one covers this instant.
const reach = 250 * time.Millisecond
