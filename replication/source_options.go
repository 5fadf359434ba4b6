package replication

import (
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
)

// SourceOptions has the dependencies of a [Source]. The source may call the functions from any
// goroutine and with its locks held. They must be quick, and must not call the source.
// Only Freed is called without locks.
type SourceOptions struct {
	// Keyspace has the keys that a full resynchronization copies.
	Keyspace *keyspace.Keyspace
	// Reached returns the offset of the stream after everything that the keyspace contains. It may
	// be beyond the bytes that were passed to Write, by the bytes that the log has not written yet.
	// All bytes up to this offset must be written later even if nothing else happens. If Reached is
	// nil, the keyspace is never ahead of the stream.
	Reached func() uint64
	// DataSet returns the ID of the data set to send, "" if it is unknown. claimed is the ID that
	// the replica has sent, or [unknownDataSet]. If DataSet is nil, the ID is unknown.
	DataSet func(claimed string) string
	// BacklogSize returns the value of repl-backlog-size, in bytes.
	BacklogSize func() int64
	// BacklogTTL returns the value of repl-backlog-ttl, the time for which a backlog is kept
	// without replicas. 0 keeps it forever.
	BacklogTTL func() time.Duration
	// PingPeriod returns the value of repl-ping-replica-period. A replica is sent a keepalive if it
	// was sent nothing else for that time.
	PingPeriod func() time.Duration
	// Stopwatch returns the reading of a monotonic clock. It is only used to measure durations.
	Stopwatch func() time.Duration
	// After calls f on its own goroutine after d: see [clock.Clock].
	After func(d time.Duration, f func()) clock.Timer
	// Freed is called on its own goroutine, without locks, when the backlog was freed because
	// there was no replica for BacklogTTL. It may be nil. The caller of Write may then omit bytes
	// of the stream. If it does, it must call [Source.Begin] before the next replica.
	Freed func()
	Log   *slog.Logger
}

// History identifies the stream of a node. The zero value means that there is none.
type History struct {
	// ID is the replication ID, 40 hexadecimal digits.
	ID string
	// ID2 is the previous replication ID of the stream, "" if there is none. A replica that knows
	// the stream by ID2 may continue if the first byte that it lacks is not after Offset2.
	ID2 string
	// Offset2 is second_repl_offset, or -1 if there is no ID2. It is the number of a byte,
	// counted from 1, so it is the offset at which ID began plus one.
	Offset2 int64
}
