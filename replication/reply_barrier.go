package replication

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// ReplyBarrier delays the replies to changes until enough replicas have acknowledged them, as the
// options repl-ack-replies and repl-ack-timeout say. Its methods may be called from any goroutine
// unless they say otherwise. The exported fields must be set before the first call.
type ReplyBarrier struct {
	Node   *Node
	Source *Source
	// Log returns the log, or an error while there is none. Then nothing is kept, and there was
	// no replica yet.
	Log func() (Log, error)
	// Timeout returns repl-ack-timeout.
	Timeout func() time.Duration
	// Stopwatch returns a monotonic reading, which is only used to measure durations.
	Stopwatch func() time.Duration

	// replicas is repl-ack-replies; 0 delays nothing.
	replicas atomic.Int32
	// overdue is the position that the log had reached repl-ack-timeout ago. Replies to changes
	// before it are not delayed any longer.
	overdue atomic.Uint64
	// abandoned is the position of the log when this server last ceased to be a primary.
	abandoned atomic.Uint64
	reached   []reachedAt // used by the goroutine of Run
}

// reachedAt says when the log reached a position, by the stopwatch.
type reachedAt struct {
	position uint64
	at       time.Duration
}

// sampleEvery is how often the position of the log is recorded, and so by how much repl-ack-timeout
// may be late.
const sampleEvery = 50 * time.Millisecond

// maxSamples bounds the recorded positions: with a long repl-ack-timeout they are farther apart.
const maxSamples = 1000

// SetReplicas sets how many replicas have to acknowledge a change before its reply leaves. 0 delays
// nothing.
func (b *ReplyBarrier) SetReplicas(n int) {
	if b.replicas.Swap(int32(n)) != int32(n) {
		b.Source.WakeWaiting()
	}
}

// Delays reports whether replies wait for replicas.
func (b *ReplyBarrier) Delays() bool { return b.replicas.Load() > 0 }

// Await reports whether the reply to a change that is in the log before position may leave. While
// the outcome is Pending, p is woken when that may have changed. It is Lost when too few replicas
// have acknowledged the change within repl-ack-timeout, or when this server ceased to be a primary.
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

// Abandon ends all waits, because this server ceases to be a primary: changes without a reply may be
// gone when it follows another server. If it is promoted again, its replicas acknowledge the state
// that it has then.
func (b *ReplyBarrier) Abandon() {
	if l, err := b.Log(); err == nil {
		b.abandoned.Store(l.Position())
		b.Source.WakeWaiting()
	}
}

// Run records until ctx ends which position of the log is overdue, and wakes the waits for changes
// that too few replicas have acknowledged in time.
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

// sample records the position of the log at now, and moves the overdue position forward.
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

// record adds r, unless the position is that of the last one or the last one is less than apart old.
func (b *ReplyBarrier) record(r reachedAt, apart time.Duration) {
	if i := len(b.reached) - 1; i >= 0 {
		if last := b.reached[i]; last.position == r.position || r.at-last.at < apart {
			return
		}
	}
	b.reached = append(b.reached, r)
}
