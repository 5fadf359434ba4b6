package replication

import (
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
)

// SourceOptions are the parts of a [Source]. Functions are asked whenever their value is
// needed, by any goroutine, with locks of the source held: they must be quick, and must not
// call it. Freed is called without locks.
type SourceOptions struct {
	// Keyspace is what a full sync copies.
	Keyspace *keyspace.Keyspace
	// Reached is the offset behind all that the keyspace holds: it may be ahead of what was
	// passed to Write by what the log has not written yet. Everything up to it has to come
	// without anybody's doing. Without it, the keyspace is never ahead.
	Reached func() uint64
	// DataSet is the id of the data set that is sent, or empty if it is unknown, for a replica that
	// claims to have that one, or [unknownDataSet]. Nil says that it is unknown.
	DataSet func(claimed string) string
	// BacklogSize is repl-backlog-size, in bytes.
	BacklogSize func() int64
	// BacklogTTL is repl-backlog-ttl: for how long a backlog is kept without replicas. 0 is
	// for ever.
	BacklogTTL func() time.Duration
	// PingPeriod is repl-ping-replica-period: after how long a silence a replica is told that
	// we are there.
	PingPeriod func() time.Duration
	// Stopwatch is a monotonic reading; it only measures.
	Stopwatch func() time.Duration
	// After calls f in a goroutine of its own once d has passed: see [clock.Clock].
	After func(d time.Duration, f func()) clock.Timer
	// Freed, unless nil, is called in a goroutine of its own, without locks, when the backlog
	// was freed since there was no replica for long. The stream need not be written any more
	// then; if bytes are left out, [Source.Begin] must come before the next replica.
	Freed func()
	Log   *slog.Logger
}

// History names the stream that a node has.
type History struct {
	// ID is the replication id, 40 hexadecimal digits.
	ID string
	// ID2 is that of the primary that was followed before, or empty. A replica that knows the
	// stream under it may go on if Offset2 is not less than the first byte it lacks.
	ID2 string
	// Offset2 is second_repl_offset, or -1: the number of a byte, counted from 1, so one more
	// than the offset at which ID began.
	Offset2 int64
}
