package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
)

// contest compares contenders, which take turns in this order.
type contest struct {
	name       string
	callers    int
	contenders []contender
}

// contender is a server and the calls that it gets.
type contender struct {
	name string
	of   *server
	load
}

func (c *contender) turn(ctx context.Context, callers int, o *options) (figures, error) {
	return c.load.turn(ctx, c.of, callers, o)
}

// emptyName and ratelimitName are the contenders that a table compares the others with.
const emptyName, ratelimitName = "empty handler", "ratelimit and redis-server"

func contests(s *servers) (all []contest) {
	add := func(name string, callers int, ratelimit bool, contenders ...contender) {
		if ratelimit && s.ratelimit != nil {
			contenders = append(contenders, contender{ratelimitName, s.ratelimit, contenders[1].load})
		}
		all = append(all, contest{name, callers, contenders})
	}
	for _, callers := range []int{64, 1} {
		for _, descriptors := range []int{1, 3} {
			call := overGRPC(descriptors)
			add(fmt.Sprintf("ShouldRateLimit, descriptors: %d, callers: %d", descriptors, callers), callers, true,
				contender{emptyName, s.empty, call}, contender{"rls-port", s.cellserver, call})
		}
	}
	add("HTTP, callers: 64", 64, true, contender{emptyName, s.empty, use}, contender{"POST /json", s.cellserver, postJSON},
		contender{"POST /v1/use", s.cellserver, use}, contender{"GET /v1/check", s.cellserver, check})
	return all
}

// result holds the figures of all turns of a contest.
type result struct {
	contest contest
	turns   [][]figures // the figures of each turn, by contender and round
}

// column is one figure of a table.
type column struct {
	head string
	of   func(f figures) float64
}

var columns = []column{
	{"calls/s", func(f figures) float64 { return f.perSecond }},
	{"CPU, µs per call", func(f figures) float64 { return f.cpu }},
	{"allocations per call", func(f figures) float64 { return f.mallocs }},
}

// write writes the table of a contest in Markdown: medians, with the least and the greatest. The last columns are the processor
// time divided by that of the empty handler, and by that of ratelimit, round by round.
func (r *result) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| |", r.contest.name)
	for _, c := range columns {
		b.WriteString(" " + c.head + " |")
	}
	var others []int
	for i, c := range r.contest.contenders {
		if c.name == emptyName || c.name == ratelimitName {
			others = append(others, i)
			b.WriteString(" CPU, divided by " + c.name + " |")
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)+len(others)) + "\n")
	for i, c := range r.contest.contenders {
		b.WriteString("| " + c.name + " |")
		for _, col := range columns {
			b.WriteString(" " + r.spread(func(round int) float64 { return col.of(r.turns[i][round]) }) + " |")
		}
		for _, other := range others {
			b.WriteString(" " + r.spread(func(round int) float64 { return r.turns[i][round].cpu / r.turns[other][round].cpu }) + " |")
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// spread formats a figure of all rounds.
func (r *result) spread(of func(round int) float64) string {
	values := make([]float64, len(r.turns[0]))
	for i := range values {
		values[i] = of(i)
	}
	return report.Spread(loadgen.NewSpread(values))
}
