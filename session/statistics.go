package session

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/stats"
)

// Statistics returns the current figures of the server. Any goroutine may call it.
func (e *Engine) Statistics() command.Statistics {
	s := command.Statistics{
		Subscribers: e.clients.subscribers(), ClientMemory: e.ClientMemory(), Received: e.received.Load(), Refused: e.refused.Load(),
		Evicted: e.evicted.Load(), SlowReaders: e.slowReaders.Load(), Panics: e.panics.Load(), PerSecond: e.rate.Ops.Load(),
		Errors: &e.errors, Callers: &e.callers,
	}
	s.Commands, s.Hits, s.Misses = e.sum()
	return s
}

// ScriptRunning returns how long the current exclusive command, a script or a transaction, has
// been running, 0 if there is none. Any goroutine may call it.
func (e *Engine) ScriptRunning() time.Duration {
	q := &e.exclusive
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == nil {
		return 0
	}
	return e.Options.Stopwatch() - q.began
}

// sum returns the sums over all workers: of the counters of each command, by command id, and of
// the keyspace hits and misses.
func (e *Engine) sum() (byCommand []stats.Totals, hits, misses int64) {
	byCommand = make([]stats.Totals, len(e.Commands.Entries))
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, w := range e.everyWorker {
		for id := range w.counts {
			n, t := &w.counts[id], &byCommand[id]
			t.Calls += n.Calls.Load()
			t.Nanos += n.Estimate()
			t.Rejected += n.Rejected.Load()
			t.Failed += n.Failed.Load()
			t.Denied += n.Denied.Load()
		}
		hits += w.Hits.Load()
		misses += w.Misses.Load()
	}
	for id := range byCommand { // resume takes back the count of a call that is refused while it waits, perhaps after a reset, so the sum may be negative
		if t := &byCommand[id]; t.Calls <= 0 {
			t.Calls, t.Nanos = 0, 0
		}
	}
	return byCommand, hits, misses
}

// commandsProcessed returns the number of commands that have run since the last reset of the
// statistics. It adds up the counters of all workers.
func (e *Engine) commandsProcessed() int64 {
	byCommand, _, _ := e.sum()
	n := int64(0)
	for _, t := range byCommand {
		n += t.Calls
	}
	return n
}

// Resets returns how often the statistics were reset, and whether a reset is in progress.
func (e *Engine) Resets() (n int64, now bool) {
	n = e.resets.Load()
	return n / 2, n%2 == 1
}

// ResetStatistics implements [command.Measures]: it sets the statistics to zero, except for the
// number of panics and the calls by user. A command that runs meanwhile may be counted before or
// after the reset.
func (e *Engine) ResetStatistics() {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	e.resets.Add(1)
	defer e.resets.Add(1)
	for _, w := range e.everyWorker {
		for id := range w.counts {
			w.counts[id].Reset()
		}
		w.Hits.Store(0)
		w.Misses.Store(0)
		e.Server.ResetStats(&w.Worker)
	}
	e.countedSince = e.Options.Now()
	for _, field := range []*atomic.Int64{&e.received, &e.refused, &e.evicted, &e.slowReaders} {
		field.Store(0)
	}
	e.errors.Reset()
	e.Refusals.ResetCounts()
	e.rate.Reset()
}

// Tick updates figures that are computed over time: the number of commands per second, and once a
// minute the statistics that decay. The server calls Tick once in every period d.
func (e *Engine) Tick(d time.Duration) {
	e.rate.Tick(e.commandsProcessed(), d)
	if e.sinceDecay += d; e.sinceDecay < time.Minute {
		return
	}
	e.sinceDecay = 0
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, w := range e.everyWorker {
		e.Server.Decay(&w.Worker)
	}
}
