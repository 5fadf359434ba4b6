package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// Table writes a report as text for a terminal.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	for _, e := range r.Entries {
		if last := last(e); last != nil {
			fmt.Fprintf(&b, "%s: %s at %s, %s\n", e.Name, orUnknown(last.Server), last.Address, settings(e))
		}
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return writeTables(w, r.grids())
}

// Markdown writes the tables of a report as Markdown.
func (r *Report) Markdown(w io.Writer) error { return writeMarkdown(w, r.grids()) }

// grids returns the tables of a report that have rows.
func (r *Report) grids() []grid {
	all := []grid{r.figures(), r.latencies(), r.lags(), r.ratios(), r.mixes(), r.decisions(), r.memory()}
	kept := all[:0]
	for _, g := range all {
		if len(g.rows) > 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// figures returns the table of throughput and cost.
func (r *Report) figures() grid {
	g := grid{title: "Throughput and cost", head: []string{"target", "commands", "per second", "CPU µs per command", "errors"}}
	for _, e := range r.Entries {
		var done, faults int64
		for _, round := range e.Rounds {
			errors, _, _ := round.Totals()
			done += round.Count()
			faults += errors + round.Unanswered
		}
		g.rows = append(g.rows, []string{
			e.Name, count(float64(done)), Spread(e.Of(loadgen.PerSecond)), Spread(e.Of(loadgen.CPU)), count(float64(faults)),
		})
	}
	return g
}

// latencies returns the table of latencies, all rounds together.
func (r *Report) latencies() grid {
	g := grid{title: "Latency in µs, all rounds together", head: []string{"target", "mean"}}
	for _, p := range percentiles {
		g.head = append(g.head, p.name)
	}
	g.head = append(g.head, "over 100 µs", "over 1 ms")
	for _, e := range r.Entries {
		h := e.Latency()
		row := []string{e.Name, figure(h.Mean() / 1e3)}
		for _, p := range percentiles {
			row = append(row, figure(micros(h.ValueAtPercentile(p.value))))
		}
		g.rows = append(g.rows, append(row, count(float64(above(e, thresholds[0]))), count(float64(above(e, thresholds[1])))))
	}
	return g
}

// lags returns the table of the delays with which the requests of an open loop left.
func (r *Report) lags() grid {
	g := grid{title: "How late commands left, in µs: the generator's own share of the latency", head: []string{"target"}}
	for _, p := range percentiles {
		g.head = append(g.head, p.name)
	}
	for _, e := range r.Entries {
		h := e.Lag()
		if h.TotalCount() == 0 {
			continue
		}
		row := []string{e.Name}
		for _, p := range percentiles {
			row = append(row, figure(micros(h.ValueAtPercentile(p.value))))
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// ratios returns a table of the first target's figures divided by the figures of each other target,
// round by round. With a single target it has no rows.
func (r *Report) ratios() grid {
	if len(r.Entries) < 2 {
		return grid{}
	}
	first := r.Entries[0]
	g := grid{
		title: "Ratios, " + first.Name + " divided by the target: median (least..greatest) of the rounds",
		head:  []string{"target", "CPU per command", "per second", "p50", "p99", "p99.9"},
	}
	for _, e := range r.Entries[1:] {
		row := []string{e.Name}
		for _, m := range []loadgen.Metric{
			loadgen.CPU, loadgen.PerSecond, loadgen.Percentile(50), loadgen.Percentile(99), loadgen.Percentile(99.9),
		} {
			row = append(row, ratio(first.Ratio(e, m)))
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// mixes returns the table of the single commands of a mix, from the last round. It leaves out
// targets with a single command.
func (r *Report) mixes() grid {
	g := grid{title: "Commands of a mix, last round, latency in µs", head: []string{"target", "command", "commands", "p50", "p99", "p99.9"}}
	for _, e := range r.Entries {
		last := last(e)
		if last == nil || len(last.Commands) < 2 {
			continue
		}
		for i := range last.Commands {
			c := &last.Commands[i]
			row := []string{e.Name, c.Command, count(float64(c.Latency.TotalCount()))}
			for _, p := range []float64{50, 99, 99.9} {
				row = append(row, figure(micros(c.Latency.ValueAtPercentile(p))))
			}
			g.rows = append(g.rows, row)
		}
	}
	return g
}

// decisions returns the table of allowed and denied commands, and of the checks.
func (r *Report) decisions() grid {
	g := grid{title: "Decisions", head: []string{"target", "limit", "allowed", "denied", "check"}}
	for _, e := range r.Entries {
		checks := e.Checks()
		for i, c := range checks {
			var allowed, denied int64
			for _, round := range e.Rounds {
				_, a, d := round.Totals()
				allowed, denied = allowed+a, denied+d
			}
			row := []string{e.Name, c.Limit, count(float64(allowed)), count(float64(denied)), verdict(c)}
			if i > 0 {
				row[2], row[3] = "", "" // the counts are sums over all limits, so these rows leave them out
			}
			g.rows = append(g.rows, row)
		}
	}
	return g
}

func verdict(c loadgen.Check) string {
	_, text, _ := strings.Cut(c.String(), c.Limit+": ")
	return text
}

// memory returns the table of the memory that a flood of keys took. It leaves out targets whose
// memory is not known or whose keys were no flood.
func (r *Report) memory() grid {
	g := grid{title: "Memory of the server", head: []string{"target", "before, MB", "after, MB", "bytes per key"}}
	for _, e := range r.Entries {
		last := last(e)
		if last == nil || last.BytesPerKey() == 0 {
			continue
		}
		g.rows = append(g.rows, []string{
			e.Name, figure(float64(last.MemoryBefore) / 1e6), figure(float64(last.MemoryAfter) / 1e6), figure(last.BytesPerKey()),
		})
	}
	return g
}
