package loadgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result holds the measurements of one run.
type Result struct {
	Target  string
	Address string
	// Server is the server's name and version from INFO, or "".
	Server  string
	Options Options
	Started time.Time
	// Elapsed is the time from the beginning of measuring to the last reply.
	Elapsed time.Duration
	// Commands has one element for each template.
	Commands []CommandResult
	// Latency holds the latencies of all commands, in nanoseconds.
	Latency *hdrhistogram.Histogram
	// Lag has the delays, in nanoseconds, with which the generator sent the requests of an open
	// loop. The latencies include these delays. Lag is empty for a closed loop.
	Lag *hdrhistogram.Histogram
	// NextKey is above the numbers of all keys that a flood used; 0 if the keys were no flood.
	NextKey uint64
	// Unanswered counts the requests without a reply when the run was abandoned, including those
	// that should have been sent by then.
	Unanswered int64
	// CPU is the server's processor time per command, 0 if it is not known.
	CPU time.Duration
	// MemoryBefore and MemoryAfter are the server's resident memory in bytes with all connections
	// open, before and after the load. They are 0 if the memory is not known.
	MemoryBefore, MemoryAfter int64
	Checks                    []Check
}

// CommandResult holds the results of one template.
type CommandResult struct {
	Command string
	Weight  int
	Latency *hdrhistogram.Histogram
	// Errors counts error replies. Malformed counts replies that do not have the form of a
	// limiter's reply or show another limit. FirstError and FirstMalformed are the first of each.
	Errors, Malformed          int64
	FirstError, FirstMalformed string
	// Limiter says that the command's replies are decisions. Allowed and Denied count them; a
	// partial grant counts as denied. Granted counts units.
	Limiter                  bool
	Allowed, Denied, Granted int64
}

// Count returns the number of commands that were answered.
func (r *Result) Count() int64 { return r.Latency.TotalCount() }

// PerSecond returns the number of commands answered per second; 0 if none was measured.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Count()) / r.Elapsed.Seconds()
}

// BytesPerKey returns how much memory the server took per key of a flood, 0 if that is not known.
func (r *Result) BytesPerKey() float64 {
	if r.Options.Keys.Kind != KeyFlood || r.MemoryBefore == 0 || r.Options.Warmup != 0 || r.Count() == 0 {
		return 0
	}
	return float64(r.MemoryAfter-r.MemoryBefore) / float64(r.Count())
}

// Totals returns the sums over all commands. errors includes malformed replies.
func (r *Result) Totals() (errors, allowed, denied int64) {
	for i := range r.Commands {
		c := &r.Commands[i]
		errors += c.Errors + c.Malformed
		allowed += c.Allowed
		denied += c.Denied
	}
	return errors, allowed, denied
}

// Failed returns one sentence for each fault of the run: error replies, malformed replies, missing
// replies, or no measurement at all.
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

// Violated reports whether a limit granted more or less than its bounds allow.
func (r *Result) Violated() bool { return slices.ContainsFunc(r.Checks, Check.Violated) }

// result builds the result from the recorders.
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

// checks compares every limit of the run with its bounds.
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
