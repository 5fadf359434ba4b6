package report

import (
	"io"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// Step is one of several comparisons of the same targets under different loads.
type Step struct {
	// Label describes the load.
	Label string
	*loadgen.Comparison
}

// Sweep writes a table for each figure, with a column for each step. If markdown is set, it writes
// Markdown.
func Sweep(w io.Writer, steps []Step, markdown bool) error {
	if len(steps) == 0 {
		return nil
	}
	grids := []grid{
		sweep("CPU µs per command", steps, func(e *loadgen.Entry) string { return Spread(e.Of(loadgen.CPU)) }),
		sweep("Commands per second", steps, func(e *loadgen.Entry) string { return Spread(e.Of(loadgen.PerSecond)) }),
		sweepRatios(steps),
	}
	return write(w, grids, markdown)
}

func sweep(title string, steps []Step, cell func(*loadgen.Entry) string) grid {
	g := grid{title: title, head: []string{"target"}}
	for i, e := range steps[0].Entries {
		row := []string{e.Name}
		for _, s := range steps {
			row = append(row, cell(s.Entries[i]))
		}
		g.rows = append(g.rows, row)
	}
	for _, s := range steps {
		g.head = append(g.head, s.Label)
	}
	return g
}

// sweepRatios returns a table of the first target's cost divided by the cost of each other target.
func sweepRatios(steps []Step) grid {
	first := steps[0].Entries[0].Name
	g := sweep("CPU per command, "+first+" divided by the target: median (least..greatest) of the rounds", steps,
		func(*loadgen.Entry) string { return "" })
	for i := range g.rows {
		for j, s := range steps {
			g.rows[i][j+1] = ratio(s.Entries[0].Ratio(s.Entries[i], loadgen.CPU))
		}
	}
	g.rows = g.rows[1:]
	return g
}
