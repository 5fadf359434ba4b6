package loadgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one run measured.
type Result struct {
	Target  string
	Address string
	// Server is what the server calls itself, and may be empty.
	Server  string
	Options Options
	Started time.Time
	// Elapsed is the time from the first request that counts to the last reply.
	Elapsed time.Duration
	// Commands has one part for each template.
	Commands []CommandResult
	// Latency holds those of all commands, in nanoseconds.
	Latency *hdrhistogram.Histogram
	// Lag is by how much the requests of an open loop missed their instants, in
	// nanoseconds: what the generator itself adds to the latencies. It is empty for
	// a closed loop.
	Lag *hdrhistogram.Histogram
	// NextKey is the first key number that a flood did not use.
	NextKey uint64
	// Unanswered counts the requests that were still waiting when it was given up,
	// those that should have left by then included.
	Unanswered int64
	// CPU is the processor time of the server per command, 0 if it is not known.
	CPU time.Duration
	// MemoryBefore and MemoryAfter are the server's resident memory in bytes, with
	// all connections open, 0 if it is not known.
	MemoryBefore, MemoryAfter int64
	Checks                    []Check
}

// CommandResult is what came back to one template.
type CommandResult struct {
	Command string
	Weight  int
	Latency *hdrhistogram.Histogram
	// Errors counts error replies, Malformed replies that are not those of the
	// limit, which both have the first as an example.
	Errors, Malformed          int64
	FirstError, FirstMalformed string
	// Limiter tells whether there are decisions to count: Allowed ones, Denied ones
	// (where a part was granted, too), and Granted units.
	Limiter                  bool
	Allowed, Denied, Granted int64
}

// Count returns the number of commands that were answered.
func (r *Result) Count() int64 { return r.Latency.TotalCount() }

// PerSecond returns the commands answered per second.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Count()) / r.Elapsed.Seconds()
}

// BytesPerKey returns how much memory the server took per key of a flood, 0 where
// that cannot be told.
func (r *Result) BytesPerKey() float64 {
	if r.Options.Keys.Kind != KeyFlood || r.MemoryBefore == 0 || r.Options.Warmup != 0 || r.Count() == 0 {
		return 0
	}
	return float64(r.MemoryAfter-r.MemoryBefore) / float64(r.Count())
}

// Totals adds up the commands.
func (r *Result) Totals() (errors, allowed, denied int64) {
	for i := range r.Commands {
		c := &r.Commands[i]
		errors += c.Errors + c.Malformed
		allowed += c.Allowed
		denied += c.Denied
	}
	return errors, allowed, denied
}

// Failed says in one sentence each what is wrong with the run: error replies,
// replies of the wrong form, and commands without an answer.
func (r *Result) Failed() []string {
	var faults []string
	for i := range r.Commands {
		c := &r.Commands[i]
		if c.FirstError != "" {
			faults = append(faults, fmt.Sprintf("%s: %d error replies to %q, the first: %s", r.Target, c.Errors, c.Command, c.FirstError))
		}
		if c.FirstMalformed != "" {
			faults = append(faults, fmt.Sprintf("%s: %d replies are not the limiter's, the first: %s", r.Target, c.Malformed, c.FirstMalformed))
		}
	}
	if r.Unanswered > 0 {
		faults = append(faults, fmt.Sprintf("%s: %d commands were never answered", r.Target, r.Unanswered))
	}
	if r.Count() == 0 {
		faults = append(faults, fmt.Sprintf("%s: nothing was measured", r.Target))
	}
	return faults
}

// Violated reports whether a limit let more through than it can have, or less.
func (r *Result) Violated() bool { return slices.ContainsFunc(r.Checks, Check.Violated) }

// result adds up what the recorders have.
func (r *run) result() *Result {
	o := r.options
	res := &Result{
		Target: r.target.Name, Address: r.target.Address, Server: r.version, Options: *o, Started: r.started,
		Latency: newHistogram(), Lag: newHistogram(), MemoryBefore: r.before.RSS, MemoryAfter: r.after.RSS,
	}
	last := r.plan.from
	for i, t := range o.Mix.templates {
		all := tally{hist: newHistogram()}
		for _, rec := range r.recorders {
			all.merge(&rec.tallies[i])
			last = max(last, rec.last)
		}
		res.Latency.Merge(all.hist)
		res.Commands = append(res.Commands, CommandResult{
			Command: t.text, Weight: t.weight, Latency: all.hist,
			Errors: all.errors, Malformed: all.malformed, FirstError: all.firstError, FirstMalformed: all.firstMalformed,
			Limiter: t.limit != nil, Allowed: all.allowed, Denied: all.denied, Granted: all.granted,
		})
	}
	for _, rec := range r.recorders {
		res.Lag.Merge(rec.lag)
	}
	res.Elapsed = time.Duration(last - r.plan.from)
	if n := r.samples[1].completed - r.samples[0].completed; n > 0 && r.pid != 0 && r.samples[0].taken {
		res.CPU = (r.samples[1].cpu - r.samples[0].cpu) / time.Duration(n)
	}
	for _, l := range r.workers {
		if r.abandoned.Load() {
			res.Unanswered += l.unsent()
		}
		for _, f := range l.flows {
			res.Unanswered += int64(f.waiting.len())
			if flood, ok := f.keys.(*floodKeys); ok {
				res.NextKey = max(res.NextKey, r.plan.firstKey+flood.n)
			}
		}
	}
	res.Checks = r.checks(res.complete())
	return res
}

// complete reports whether every decision of the server is known.
func (r *Result) complete() bool {
	for i := range r.Commands {
		if r.Commands[i].FirstMalformed != "" {
			return false
		}
	}
	return r.Unanswered == 0
}

// checks holds every limit of the run against its bounds.
func (r *run) checks(complete bool) []Check {
	var checks []Check
	seen := make(map[*ledger]bool)
	for _, ledgers := range r.plan.ledgers {
		for _, l := range ledgers {
			if !seen[l] {
				seen[l] = true
				checks = append(checks, l.check(r.span, complete))
			}
		}
	}
	return checks
}
