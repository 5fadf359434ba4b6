package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Contender is a target and the options of its runs.
type Contender struct {
	Target  Target
	Options Options
}

// Comparison holds the results of several contenders that ran in turn. Reports relate the first one
// to each of the others.
type Comparison struct {
	Entries []*Entry
}

// Entry is one contender with the results of its rounds.
type Entry struct {
	Name   string
	Rounds []*Result
}

// Spread is the median and the range of a figure over several rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// NewSpread returns the spread of values. It ignores zeros, which are rounds without a figure. If
// nothing is left, the spread is zero.
func NewSpread(values []float64) Spread {
	known := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v == 0 })
	if len(known) == 0 {
		return Spread{}
	}
	slices.Sort(known)
	half := len(known) / 2
	median := known[half]
	if len(known)%2 == 0 {
		median = (known[half-1] + median) / 2
	}
	return Spread{Median: median, Min: known[0], Max: known[len(known)-1]}
}

// Known reports whether any round has the figure.
func (s Spread) Known() bool { return s != Spread{} }

// Compare runs the contenders in turn for a number of rounds, in the orders ABC, BCA, CAB, so that
// other load of the machine affects all of them alike. After each run it calls after, if that is
// not nil. If ctx ends, the comparison holds only the complete rounds, or the unfinished one if
// rounds is 1. An error of a run ends the comparison, and is returned with the results so far.
func Compare(ctx context.Context, contenders []Contender, rounds int, after func(round int, r *Result)) (*Comparison, error) {
	c := &Comparison{}
	for _, contender := range contenders {
		c.Entries = append(c.Entries, &Entry{Name: contender.Target.Name})
	}
	contenders = slices.Clone(contenders)
	for round := range rounds {
		for turn := range contenders {
			i := (turn + round) % len(contenders) // each round begins with another contender
			r, err := Run(ctx, contenders[i].Target, contenders[i].Options)
			if err != nil {
				return c, err
			}
			if ctx.Err() != nil && rounds > 1 {
				c.cut(round)
				return c, nil
			}
			c.Entries[i].Rounds = append(c.Entries[i].Rounds, r)
			contenders[i].Options.Keys.First = max(contenders[i].Options.Keys.First, r.NextKey)
			if after != nil {
				after(round, r)
			}
		}
	}
	return c, nil
}

func (c *Comparison) cut(rounds int) {
	for _, e := range c.Entries {
		e.Rounds = e.Rounds[:min(len(e.Rounds), rounds)]
	}
}

// Metric is one figure of a run.
type Metric func(*Result) float64

// PerSecond is the number of commands answered per second.
func PerSecond(r *Result) float64 { return r.PerSecond() }

// CPU is the server's processor time per command in microseconds.
func CPU(r *Result) float64 { return float64(r.CPU) / 1e3 }

// Mean is the mean latency in microseconds.
func Mean(r *Result) float64 { return r.Latency.Mean() / 1e3 }

// Percentile returns the metric of a latency percentile, in microseconds.
func Percentile(p float64) Metric {
	return func(r *Result) float64 { return float64(r.Latency.ValueAtPercentile(p)) / 1e3 }
}

// Of returns the spread of a metric over the rounds of the entry.
func (e *Entry) Of(m Metric) Spread {
	values := make([]float64, len(e.Rounds))
	for i, r := range e.Rounds {
		values[i] = m(r)
	}
	return NewSpread(values)
}

// Ratio returns the spread of a metric over the rounds of the entry, each divided by the metric of
// the same round of other.
func (e *Entry) Ratio(other *Entry, m Metric) Spread {
	var values []float64
	for i := range min(len(e.Rounds), len(other.Rounds)) {
		if below := m(other.Rounds[i]); below != 0 {
			values = append(values, m(e.Rounds[i])/below)
		}
	}
	return NewSpread(values)
}

// Latency returns the latencies of all rounds together.
func (e *Entry) Latency() *hdrhistogram.Histogram {
	all := newHistogram()
	for _, r := range e.Rounds {
		all.Merge(r.Latency)
	}
	return all
}

// Lag returns the delays with which the generator sent the requests of all rounds: see [Result.Lag].
func (e *Entry) Lag() *hdrhistogram.Histogram {
	all := newHistogram()
	for _, r := range e.Rounds {
		all.Merge(r.Lag)
	}
	return all
}

// Faults returns the faults of all rounds, without duplicates.
func (e *Entry) Faults() []string {
	var faults []string
	for _, r := range e.Rounds {
		faults = append(faults, r.Failed()...)
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// Checks returns one check for each limit and command: that of the round with the most keys beyond
// the bound; if there are several, that with the most keys that were granted too little; and among
// these, that with the largest number of units granted to one key.
func (e *Entry) Checks() []Check {
	worst := make(map[string]Check)
	var order []string
	for _, r := range e.Rounds {
		for _, c := range r.Checks {
			name := fmt.Sprint(c.Limit, c.Command)
			old, seen := worst[name]
			if !seen {
				order = append(order, name)
			}
			if !seen || cmp.Or(cmp.Compare(c.Violations, old.Violations), cmp.Compare(c.Short, old.Short), cmp.Compare(c.Most, old.Most)) > 0 {
				worst[name] = c
			}
		}
	}
	checks := make([]Check, 0, len(order))
	for _, name := range order {
		checks = append(checks, worst[name])
	}
	return checks
}
