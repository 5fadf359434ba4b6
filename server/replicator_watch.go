package server

import (
	"context"
	"time"
)

// reachedAt says when the log had got to a position, by the stopwatch.
type reachedAt struct {
	position uint64
	at       time.Duration
}

// watchEvery is how often the log's position is noted, and so by how much repl-ack-timeout may be
// late.
const watchEvery = 50 * time.Millisecond

// mostReached bounds the notes: with a long repl-ack-timeout they are farther apart.
const mostReached = 1000

// watch notes until ctx ends which position of the log is overdue, and has those ask again who
// wait for more replicas than have it.
func (r *replicator) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := int(r.replies.Load()); n > 0 {
			r.noteReached(n, r.s.stopwatch())
		} else {
			r.reached = r.reached[:0]
		}
	}
}

// noteReached is what watch does at each tick.
func (r *replicator) noteReached(n int, now time.Duration) {
	l, err := r.s.persistence.Log() // there is none yet if nothing is kept and no replica came
	if err != nil {
		return
	}
	position := l.Position()
	timeout := r.s.config.Milliseconds("repl-ack-timeout")
	r.note(reachedAt{position, now}, timeout/mostReached)
	old := 0
	for old < len(r.reached) && r.reached[old].at <= now-timeout {
		r.overdue.Store(r.reached[old].position)
		old++
	}
	r.reached = append(r.reached[:0], r.reached[old:]...)
	if r.node.Acked(r.overdue.Load()) < n {
		r.source.WakeWaiting()
	}
}

// note adds a note, unless it says nothing new or the last one is less than apart ago.
func (r *replicator) note(n reachedAt, apart time.Duration) {
	if i := len(r.reached) - 1; i >= 0 {
		if last := r.reached[i]; last.position == n.position || n.at-last.at < apart {
			return
		}
	}
	r.reached = append(r.reached, n)
}
