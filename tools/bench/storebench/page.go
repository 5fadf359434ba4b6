package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// column is one figure of the tables.
type column struct {
	head string
	of   func(figures) float64
}

func columns() []column {
	return []column{
		{"decisions/s", func(f figures) float64 { return f.PerSecond }},
		{"p99, ms", func(f figures) float64 { return millis(f.P99) }},
		{"nodes, µs per decision", func(f figures) float64 { return f.Engine }},
		{"own, µs per decision", func(f figures) float64 { return f.Own }},
		{"slowest/fastest server", func(f figures) float64 { return f.Fairness }},
		{"messages/s", func(f figures) float64 { return f.Messages }},
	}
}

// writePage writes the page into the file, or to standard output if name is empty.
func writePage(name string, n *nodes, measured []*result, o options) error {
	text := page(n, measured, o)
	if name == "" {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

func page(n *nodes, measured []*result, o options) string {
	var b strings.Builder
	b.WriteString(pageIntro)
	m := process.This()
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"measured", time.Now().UTC().Format("2006-01-02 15:04 UTC")},
		{"machine", fmt.Sprintf("%s, %d cores, %s/%s", m.Processor, m.Cores, runtime.GOOS, runtime.GOARCH)},
		{"nodes", fmt.Sprintf("%d masters, %s, on the same machine", masters, n.version)},
		{"turns", fmt.Sprintf("%d rounds of %s, after %s that do not count", o.rounds, o.span, o.warmup)},
		{"programs", m.Go + ", redis_rate v10.0.1, go-redis v9.23.0, redis-benchmark"},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	for _, r := range measured {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", r.contest.name, r.contest.text)
		r.figures(&b)
		if strings.HasPrefix(r.contest.contenders[0].name, library) {
			r.ratios(&b)
		}
	}
	return b.String()
}

// shown returns the columns that have a figure.
func (r *result) shown() (kept []column) {
	for _, c := range columns() {
		if slices.ContainsFunc(r.turns, func(turns []figures) bool {
			return slices.ContainsFunc(turns, func(f figures) bool { return c.of(f) > 0 })
		}) {
			kept = append(kept, c)
		}
	}
	return kept
}

// figures writes the table of the figures.
func (r *result) figures(b *strings.Builder) {
	all := r.shown()
	writeHead(b, "", all)
	for i, c := range r.contest.contenders {
		b.WriteString("| " + c.name + " |")
		for _, col := range all {
			values := make([]float64, 0, len(r.turns[i]))
			for _, f := range r.turns[i] {
				values = append(values, col.of(f))
			}
			b.WriteString(" " + spread(values) + " |")
		}
		b.WriteByte('\n')
	}
}

// ratios writes the table of the figures divided by the figures of the first contender, round by
// round.
func (r *result) ratios(b *strings.Builder) {
	all := slices.DeleteFunc(r.shown(), func(c column) bool {
		return slices.ContainsFunc(r.turns[0], func(f figures) bool { return c.of(f) == 0 })
	})
	b.WriteByte('\n')
	writeHead(b, "divided by "+r.contest.contenders[0].name, all)
	for i, c := range r.contest.contenders[1:] {
		b.WriteString("| " + c.name + " |")
		for _, col := range all {
			values := make([]float64, 0, len(r.turns[0]))
			for round, f := range r.turns[0] {
				values = append(values, col.of(r.turns[i+1][round])/col.of(f))
			}
			b.WriteString(" " + spread(values) + " |")
		}
		b.WriteByte('\n')
	}
}

func writeHead(b *strings.Builder, first string, all []column) {
	b.WriteString("| " + first + " |")
	for _, c := range all {
		b.WriteString(" " + c.head + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(all)) + "\n")
}

// spread formats the median of values, with the least and the greatest in parentheses.
func spread(values []float64) string {
	values = slices.Sorted(slices.Values(values))
	if len(values) == 0 || values[len(values)-1] == 0 {
		return "" // the page does not have this figure
	}
	return fmt.Sprintf("%s (%s..%s)", short(values[len(values)/2]), short(values[0]), short(values[len(values)-1]))
}

// short formats v with three significant digits, or with all digits of its integer part if it has
// more. A number below 1 gets three decimal places.
func short(v float64) string {
	digits := 3
	for most := 1.0; most <= v && digits > 0; most *= 10 {
		digits--
	}
	return grouped(strconv.FormatFloat(v, 'f', digits, 64))
}

// grouped inserts thousands separators.
func grouped(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

const pageIntro = `# What deciding in a store costs

` + "`make bench-store`" + ` writes this page; do not edit it. It compares ` + "`cellserver --store`" + ` with the script of
go-redis/redis_rate on the same cluster, which runs beside the load on one machine that was also used for other work. All contenders take turns in
every round, so read the figures as ratios. Tables show the median of the rounds, and the least and the greatest in
parentheses. "nodes" is the processor time of all nodes together, and "own" that of the servers or, for redis_rate,
of the programs that use it. [scale-out.md](scale-out.md) says what the figures mean for a plan.

`
