package replication

import (
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
)

// SourceOptions are the dependencies of a [Source]. The functions are called from any goroutine
// when their value is needed, with locks of the source held. They must be quick, and must not
// call the source. Freed is called without locks.
type SourceOptions struct {
	// Keyspace is what a full resynchronization copies.
	Keyspace *keyspace.Keyspace
	// Reached returns the offset behind everything that the keyspace holds. It may be ahead of
	// the bytes passed to Write by what the log has not written yet. All bytes up to that offset
	// must be written later without further calls. If Reached is nil, the keyspace is never
	// ahead.
	Reached func() uint64
	// DataSet returns the ID of the data set to send, or empty if it is unknown. claimed is the
	// ID that the replica has sent, or [unknownDataSet]. If DataSet is nil, the ID is unknown.
	DataSet func(claimed string) string
	// BacklogSize returns repl-backlog-size, in bytes.
	BacklogSize func() int64
	// BacklogTTL returns repl-backlog-ttl: for how long a backlog is kept without replicas. 0
	// keeps it forever.
	BacklogTTL func() time.Duration
	// PingPeriod returns repl-ping-replica-period: how long a replica is sent nothing before it
	// is sent a keepalive.
	PingPeriod func() time.Duration
	// Stopwatch returns a monotonic reading, which is only used to measure durations.
	Stopwatch func() time.Duration
	// After calls f in a goroutine of its own once d has passed: see [clock.Clock].
	After func(d time.Duration, f func()) clock.Timer
	// Freed is called, unless it is nil, in a goroutine of its own and without locks, when the
	// backlog was freed because there was no replica for BacklogTTL. The caller of Write may then
	// omit bytes of the stream. If it does, it must call [Source.Begin] before the next replica.
	Freed func()
	Log   *slog.Logger
}

// History identifies the stream of a node.
type History struct {
	// ID is the replication ID, 40 hexadecimal digits.
	ID string
	// ID2 is the replication ID of the primary that was followed before, or empty. A replica that
	// knows the stream by ID2 may continue if the first byte that it lacks is not behind Offset2.
	ID2 string
	// Offset2 is second_repl_offset, or -1. It is the number of a byte, counted from 1, so it is
	// one more than the offset at which ID began.
	Offset2 int64
}
