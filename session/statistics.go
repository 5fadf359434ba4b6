package session

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/stats"
)

// Statistics implements [command.Host].
func (e *Engine) Statistics() command.Statistics {
	s := command.Statistics{
		Subscribers: e.clients.subscribers(), ClientMemory: e.ClientMemory(), Received: e.received.Load(), Refused: e.refused.Load(),
		Evicted: e.evicted.Load(), SlowReaders: e.slowReaders.Load(), Panics: e.panics.Load(), PerSecond: e.rate.Ops.Load(),
		Errors: &e.errors, Callers: &e.callers,
	}
	s.Commands, s.Hits, s.Misses = e.sum()
	return s
}

// ScriptRunning is for how long the script or transaction that keeps everybody waiting has been
// running, 0 if none does.
func (e *Engine) ScriptRunning() time.Duration {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == nil {
		return 0
	}
	return e.Options.Stopwatch() - q.began
}

// sum adds up the counters of all workers, by command id, and the keyspace lookups.
func (e *Engine) sum() (byCommand []stats.Totals, hits, misses int64) {
	byCommand = make([]stats.Totals, len(e.Commands.Entries))
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, l := range e.everyWorker {
		for id := range l.counts {
			n, t := &l.counts[id], &byCommand[id]
			t.Calls += n.Calls.Load()
			t.Nanos += n.Estimate()
			t.Rejected += n.Rejected.Load()
			t.Failed += n.Failed.Load()
			t.Denied += n.Denied.Load()
		}
		hits += l.Hits.Load()
		misses += l.Misses.Load()
	}
	for id := range byCommand { // a call that is refused while it waits has been counted, perhaps before a reset
		if t := &byCommand[id]; t.Calls <= 0 {
			t.Calls, t.Nanos = 0, 0
		}
	}
	return byCommand, hits, misses
}

// commandsProcessed is the number of commands that have run since the start.
func (e *Engine) commandsProcessed() int64 {
	byCommand, _, _ := e.sum()
	n := int64(0)
	for _, t := range byCommand {
		n += t.Calls
	}
	return n
}

// Resets is how often the statistics were reset, and whether that is going on.
func (e *Engine) Resets() (n int64, now bool) {
	n = e.resets.Load()
	return n / 2, n%2 == 1
}

// ResetStatistics implements [command.Host]. Workers that run meanwhile may add to either side
// of it.
func (e *Engine) ResetStatistics() {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	e.resets.Add(1)
	defer e.resets.Add(1)
	for _, l := range e.everyWorker {
		for id := range l.counts {
			l.counts[id].Reset()
		}
		l.Hits.Store(0)
		l.Misses.Store(0)
		e.Server.ResetStats(&l.Worker)
	}
	e.countedSince = e.Options.Now()
	for _, field := range []*atomic.Int64{&e.received, &e.refused, &e.evicted, &e.slowReaders} {
		field.Store(0)
	}
	e.errors.Reset()
	e.Refusals.ResetCounts()
	e.rate.Reset()
}

// Tick is called once in every period d, for figures that need a rhythm.
func (e *Engine) Tick(d time.Duration) {
	e.rate.Tick(e.commandsProcessed(), d)
	if e.sinceDecay += d; e.sinceDecay < time.Minute {
		return
	}
	e.sinceDecay = 0
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, l := range e.everyWorker {
		e.Server.Decay(&l.Worker)
	}
}
