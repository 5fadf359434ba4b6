package report

import (
	"fmt"
	"io"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// Idle writes a table of the memory that idle connections cost each target.
func Idle(w io.Writer, results []*loadgen.IdleResult, markdown bool) error {
	g := grid{title: "Idle connections", head: []string{"target", "connections", "before, MB", "after, MB", "bytes per connection"}}
	for _, r := range results {
		g.rows = append(g.rows, []string{
			r.Target, count(float64(r.Connections)), megabytes(r.Before), megabytes(r.After), count(r.BytesPerConnection()),
		})
	}
	return write(w, []grid{g}, markdown)
}

// Expiry writes a table of the effect of a mass expiry on each target and on its other clients.
func Expiry(w io.Writer, results []*loadgen.ExpiryResult, markdown bool) error {
	keys := grid{
		title: "Keys that expire at once",
		head:  []string{"target", "keys", "gone after, ms", "empty, MB", "full, MB", "afterwards, MB"},
	}
	users := grid{
		title: "Other commands meanwhile, open loop, latency in µs",
		head:  []string{"target", "when", "commands", "p50", "p99", "p99.9", "p99.99", "max", "over 1 ms"},
	}
	for _, r := range results {
		gone := "never"
		if r.Gone >= 0 {
			gone = fmt.Sprintf("%.0f", r.Gone.Seconds()*1e3)
		}
		keys.rows = append(keys.rows, []string{
			r.Target, count(float64(r.Keys)), gone, megabytes(r.Empty), megabytes(r.Full), megabytes(r.After),
		})
		users.rows = append(users.rows, foreground(r.Target, "before", r.Quiet), foreground(r.Target, "around", r.During))
	}
	return write(w, []grid{keys, users}, markdown)
}

func foreground(target, when string, r *loadgen.Result) []string {
	row := []string{target, when, count(float64(r.Count()))}
	for _, p := range []float64{50, 99, 99.9, 99.99, 100} {
		row = append(row, figure(micros(r.Latency.ValueAtPercentile(p))))
	}
	return append(row, count(float64(slower(r.Latency, time.Millisecond))))
}

func megabytes(n int64) string { return figure(float64(n) / 1e6) }
