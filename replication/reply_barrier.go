package replication

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// ReplyBarrier delays the replies to changes until enough replicas have acknowledged the changes,
// as the options repl-ack-replies and repl-ack-timeout require. Any goroutine may call its
// methods, except Run. The exported fields must be set before the first call.
type ReplyBarrier struct {
	Node   *Node
	Source *Source
	// Log returns the log, or an error while there is none. Without a log there has not been a
	// replica.
	Log func() (Log, error)
	// Timeout returns the value of repl-ack-timeout.
	Timeout func() time.Duration
	// Stopwatch returns the reading of a monotonic clock. It is only used to measure durations.
	Stopwatch func() time.Duration

	// replicas is the value of repl-ack-replies; 0 delays nothing.
	replicas atomic.Int32
	// overdue is the position that the log had reached repl-ack-timeout ago. Replies to changes
	// before this position are not delayed any longer.
	overdue atomic.Uint64
	// abandoned is the position of the log when this server last ceased to be a primary.
	abandoned atomic.Uint64
	reached   []reachedAt // earlier positions of the log, the oldest first; used by the goroutine of Run
}

// reachedAt is a position of the log, and the stopwatch reading when the log had reached it.
type reachedAt struct {
	position uint64
	at       time.Duration
}

// sampleEvery is the interval at which the position of the log is recorded. The end of
// repl-ack-timeout may be detected this much late.
const sampleEvery = 50 * time.Millisecond

// maxSamples is the maximum number of recorded positions. If repl-ack-timeout is long, the
// positions are further apart.
const maxSamples = 1000

// SetReplicas sets n, the number of replicas that have to acknowledge a change before the reply to
// the change is sent. If n is 0, no reply is delayed.
func (b *ReplyBarrier) SetReplicas(n int) {
	if b.replicas.Swap(int32(n)) != int32(n) {
		b.Source.WakeWaiting()
	}
}

// Delays reports whether replies to changes wait for replicas.
func (b *ReplyBarrier) Delays() bool { return b.replicas.Load() > 0 }

// Await returns Kept if the reply to a change may be sent. position is the position of the log
// after the change. While the outcome is Pending, p is woken when the outcome may have changed. The
// outcome is Lost if too few replicas have acknowledged the change within repl-ack-timeout, or if
// this server has ceased to be a primary.
func (b *ReplyBarrier) Await(position uint64, p transport.Peer) transport.Outcome {
	n := int(b.replicas.Load())
	if n == 0 {
		return transport.Kept
	}
	if position != 0 && position <= b.abandoned.Load() {
		return transport.Lost
	}
	_, outcome := b.Node.Await(n, position, p)
	if outcome == transport.Pending && position <= b.overdue.Load() {
		return transport.Lost
	}
	return outcome
}

// Abandon ends all waits with the outcome Lost, because this server ceases to be a primary: the
// changes may be undone when it follows another server. If it is promoted again, its replicas
// acknowledge the state that it has then, which may lack these changes.
func (b *ReplyBarrier) Abandon() {
	if l, err := b.Log(); err == nil {
		b.abandoned.Store(l.Position())
		b.Source.WakeWaiting()
	}
}

// Run records the position of the log at intervals, until ctx ends, and wakes the waits for
// changes that too few replicas have acknowledged in time. The server runs it once, on its own
// goroutine.
func (b *ReplyBarrier) Run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := int(b.replicas.Load()); n > 0 {
			b.sample(n, b.Stopwatch())
		} else {
			b.reached = b.reached[:0]
		}
	}
}

// sample records the position of the log at the stopwatch reading now, and updates overdue. If
// fewer than n replicas have acknowledged everything before overdue, sample wakes the waits.
func (b *ReplyBarrier) sample(n int, now time.Duration) {
	l, err := b.Log()
	if err != nil {
		return
	}
	timeout := b.Timeout()
	b.record(reachedAt{l.Position(), now}, timeout/maxSamples)
	old := 0
	for old < len(b.reached) && b.reached[old].at <= now-timeout {
		b.overdue.Store(b.reached[old].position)
		old++
	}
	b.reached = append(b.reached[:0], b.reached[old:]...)
	if b.Node.Acked(b.overdue.Load()) < n {
		b.Source.WakeWaiting()
	}
}

// record adds r to the recorded positions, unless the last recorded position is the same, or was
// recorded less than apart before r.
func (b *ReplyBarrier) record(r reachedAt, apart time.Duration) {
	if i := len(b.reached) - 1; i >= 0 {
		if last := b.reached[i]; last.position == r.position || r.at-last.at < apart {
			return
		}
	}
	b.reached = append(b.reached, r)
}
