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

// Options are the parts of a [Node]. All fields must be set but Replica,
// RedisFollower, Serve and After.
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
	// Settings returns the values of the options of the server. It is asked often.
	Settings func() Settings
	// Stopwatch is a monotonic reading; it only measures.
	Stopwatch func() time.Duration
	// After is time.After, or a test's own.
	After func(time.Duration) <-chan time.Time
	// Redis takes over connections to a Redis or Valkey. Nil means that the node can only
	// follow servers of its own kind.
	Redis RedisFollower
	// ServeRedis answers a PSYNC of a replica that is no server of this kind, in place of the
	// source. It is called when the stream runs, and must not block. Nil refuses them.
	ServeRedis func(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error)
	Log        *slog.Logger
}

// Settings are options of the server, by their names in its configuration.
type Settings struct {
	User, Password    string        // masteruser, masterauth
	AnnounceIP        string        // replica-announce-ip
	Port              int           // replica-announce-port, or else the port that is listened on
	Listens           []int         // the ports that are listened on, whatever is announced
	Announced         bool          // replica-announced
	Priority          int           // replica-priority
	Timeout           time.Duration // repl-timeout
	ServeStale        bool          // replica-serve-stale-data
	RefuseOther       bool          // repl-refuse-empty
	BacklogSize       int64         // repl-backlog-size
	MinReplicas       int           // min-replicas-to-write
	MinReplicasMaxLag time.Duration // min-replicas-max-lag; with 0, no replica is needed
}

// NeedsReplicas reports whether a primary refuses changes while it has too few good replicas.
func (s Settings) NeedsReplicas() bool { return s.MinReplicas > 0 && s.MinReplicasMaxLag > 0 }

// Keyspace is what a node asks of the keyspace that it replicates; its methods are those of
// keyspace.Keyspace.
type Keyspace interface {
	// Databases is how many there are.
	Databases() int
	// ApplyRecord applies the effects of a record together. After an error nothing of it is
	// applied.
	ApplyRecord(record []byte, at limit.Instant) error
	// Restore makes a key hold what it holds in a snapshot.
	Restore(db int, key []byte, e entry.Entry) error
	// Whole is asked when a state is loaded. Its error says that something is missing.
	Whole() error
	// Empty removes all keys.
	Empty()
	// Exclusively runs f while nobody else uses the keyspace.
	Exclusively(f func())
	// ResetInstants makes at the latest instant of all keys. It is called inside Alone.
	ResetInstants(at limit.Instant)
	// SweepTo says that keys that expire after an instant are not removed.
	SweepTo(at limit.Instant)
	// Stats says how many keys there are.
	Stats() keyspace.Stats
}

// Clock is the clock of a node, which learns to follow another's.
type Clock interface {
	Now() limit.Instant
	// Set moves the clock to an instant, also back. It is called while nobody reads it.
	Set(at limit.Instant)
	// Follow says that the primary's clock showed at when it sent what has just arrived.
	Follow(at limit.Instant)
	// ForgetPrimary says that what Follow is told from now on comes from another primary's clock.
	ForgetPrimary()
	// StopFollowing lets the clock go on by its own.
	StopFollowing()
}

// Log is the log through which the effects of a node go; its methods are those of
// persistence.Log.
type Log interface {
	keyspace.Journal
	// SetTap passes everything behind position from to t, or to nobody if t is nil.
	SetTap(t persistence.Tap) (from uint64)
	// Await writes everything up to a position, unless it was, or leaves that to others.
	Await(position uint64, w persistence.Waker) persistence.Outcome
	// NoteClock writes a clock record, and all that was appended before.
	NoteClock() error
	// NoteOrigin records that the state, with all that was appended before, is that of o.
	NoteOrigin(o *persistence.Origin) error
	// Position is behind everything that was appended.
	Position() uint64
	// Synced is the position up to which everything is durable.
	Synced() uint64
}

// Files manages the files of a node.
type Files interface {
	// Log is the log through which all effects go. It is made if there is none. It waits
	// until nobody uses the keyspace, so a goroutine that does must not call it.
	Log() (Log, error)
	// Origin is what the files said at the start of whose state it is, or nil if they did not or
	// something has been changed since. No key was removed since then that had not expired KeepExpired before the
	// last instant that they record.
	Origin() *persistence.Origin
	// DataSet is the id of the data set that the keyspace has, or empty while it is unknown, as in
	// files of older versions. Neither it nor SetDataSet blocks.
	DataSet() string
	// Restored reports whether an operator has restored that data set from a backup in this server's
	// files. It does not block either, and is false after SetDataSet.
	Restored() bool
	// SetDataSet says that it is of another, or that its id is known now.
	SetDataSet(id string)
	// Suspend says that a full sync begins. Files keep the state of before, and no snapshot
	// may begin. What Rewrite began has ended when it returns.
	Suspend()
	// Rewrite begins to write the state of a full synchronization, which is whole now, to the files.
	// The log accepts effects when it returns. finish returns when the files have the state, with
	// all effects since. If ctx ends before, the files keep their old state until Suspend is called.
	Rewrite() (finish func(ctx context.Context) error)
}

// RedisFollower follows a Redis or Valkey for a node; its methods are those of redis.Follower.
type RedisFollower interface {
	// Follow follows over conn, whose answer to PSYNC is reply, until the connection or ctx
	// ends. It calls [Node.RedisBegins] before it stores a whole state, [Node.RedisEmpty]
	// before that if there is no key in it, and [Node.RedisWhole] when it has come.
	Follow(ctx context.Context, conn net.Conn, in *bufio.Reader, reply string) error
	// Current is the history that was copied, or "", and up to where. Settled says that all
	// before is stored.
	Current() (replid string, offset int64, settled bool)
	// Forget has the next link begin with a whole copy. It is not called during Follow.
	Forget()
}

// Host is the server as a node changes it. Its methods do not block.
type Host interface {
	// The four set what commands are refused for.
	SetReadOnly(on bool)
	SetMasterDown(on bool)
	// SetNoReplicas has them refused while [Node.EnoughReplicas] says that there are too few.
	SetNoReplicas(on bool)
	SetLoading(on bool)
	// SetPrimary tells whom the node follows from now on, or with two empty strings that it is
	// a primary.
	SetPrimary(host, port string)
	// PauseWrites postpones commands that may change something until Resume.
	PauseWrites()
	Resume()
	// Unblock ends the waiting of all clients that a primary would serve, with -UNBLOCKED.
	Unblock()
}

// After a clock record of the primary, its effects may be later than the clock here by the
// least time that a message takes. reach is more than that: a record is stored with a clock
// record of its own unless one covers it.
const reach = 250 * time.Millisecond
