package commands

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// counter is what one lane knows of one command. Only its lane adds; INFO reads.
type counter struct {
	calls    atomic.Int64
	nanos    atomic.Int64 // of what was measured whenever it ran
	sampled  atomic.Int64 // nanoseconds of the calls that were timed
	timed    atomic.Int64 // how many these are
	rejected atomic.Int64 // refused before they ran: arity, authentication
	failed   atomic.Int64 // answered with an error
	denied   atomic.Int64 // of a limiter: answered with "limited"
}

// sampleEvery is how many commands share one reading of the stopwatch: two
// readings for each would cost a tenth of a pipelined command. The first call of each
// command is timed, so that none which ran seems to have taken no time.
const sampleEvery = 64

// estimate is how long all calls have taken together, in nanoseconds, if those that were
// timed are like the others.
func (n *counter) estimate() int64 {
	timed := n.timed.Load()
	if timed == 0 {
		return n.nanos.Load()
	}
	return n.nanos.Load() + int64(float64(n.sampled.Load())/float64(timed)*float64(n.calls.Load()))
}

// count notes one call of cmd. A run of equal commands is added to the counters in
// one go, so that a pipeline of one command costs one atomic addition.
func (l *Lane) count(cmd *Command) {
	if cmd != l.runCmd {
		l.flushRun()
		l.runCmd = cmd
		if l.counts[cmd.id].timed.Load() == 0 {
			l.sample = 1
		}
	}
	l.runLen++
}

// decided notes the outcome of a limiter command for key.
func (c *Ctx) decided(key []byte, d *limit.Decision) {
	if d.Refused != 0 {
		c.runDenied++
	}
	c.note(key, d.Refused != 0)
}

// flushRun adds the current run to the counters, at the end of a batch or when
// another command begins.
func (l *Lane) flushRun() {
	if l.runCmd == nil {
		return
	}
	n := &l.counts[l.runCmd.id]
	n.calls.Add(l.runLen)
	if l.runDenied > 0 {
		n.denied.Add(l.runDenied)
	}
	l.runCmd, l.runLen, l.runDenied = nil, 0, 0
}

// totals is the sum of a counter over all lanes.
type totals struct {
	calls, nanos, rejected, failed, denied int64
}

// sum adds up the counters of all lanes, by command id, and the keyspace lookups.
func (e *Engine) sum() (byCommand []totals, hits, misses int64) {
	byCommand = make([]totals, len(e.table.all))
	e.lanesMu.Lock()
	defer e.lanesMu.Unlock()
	for _, l := range e.lanes {
		for id := range l.counts {
			n, t := &l.counts[id], &byCommand[id]
			t.calls += n.calls.Load()
			t.nanos += n.estimate()
			t.rejected += n.rejected.Load()
			t.failed += n.failed.Load()
			t.denied += n.denied.Load()
		}
		hits += l.hits.Load()
		misses += l.misses.Load()
	}
	return byCommand, hits, misses
}

// commandsProcessed is the number of commands that have run since the start.
func (e *Engine) commandsProcessed() int64 {
	byCommand, _, _ := e.sum()
	n := int64(0)
	for _, t := range byCommand {
		n += t.calls
	}
	return n
}

// resetStats is CONFIG RESETSTAT. Lanes that run meanwhile may add to either side
// of it.
func (e *Engine) resetStats() {
	e.lanesMu.Lock()
	defer e.lanesMu.Unlock()
	for _, l := range e.lanes {
		for id := range l.counts {
			n := &l.counts[id]
			for _, field := range []*atomic.Int64{&n.calls, &n.nanos, &n.sampled, &n.timed, &n.rejected, &n.failed, &n.denied} {
				field.Store(0)
			}
		}
		l.hits.Store(0)
		l.misses.Store(0)
	}
	e.resetTop()
	for _, field := range []*atomic.Int64{&e.received, &e.refused} {
		field.Store(0)
	}
	e.errors.reset()
	e.rate.reset()
}

// rate estimates commands per second over the last tick of the janitor.
type rate struct {
	ops  atomic.Int64 // per second
	last atomic.Int64 // commands at the last tick
}

// tick notes how many commands had run when a period of d ended.
func (r *rate) tick(commands int64, d time.Duration) {
	before := r.last.Swap(commands)
	if d > 0 {
		r.ops.Store(max(0, int64(float64(commands-before)/d.Seconds())))
	}
}

func (r *rate) reset() {
	r.ops.Store(0)
	r.last.Store(0)
}

// Tick is called once in every period d, for figures that need a rhythm.
func (e *Engine) Tick(d time.Duration) {
	e.rate.tick(e.commandsProcessed(), d)
	if e.sinceHalved += d; e.sinceHalved < topHalfLife {
		return
	}
	e.sinceHalved = 0
	e.lanesMu.Lock()
	defer e.lanesMu.Unlock()
	for _, l := range e.lanes {
		l.denied.halve()
		l.calls.halve()
	}
}

// topHalfLife is after how long RL.TOP has forgotten half of what it saw.
const topHalfLife = time.Minute
