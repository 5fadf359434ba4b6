// Package report writes the measurements of package loadgen. The forms are a table for people,
// Markdown for documents, JSON for programs, and one self-contained HTML page.
package report

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// Report holds the results of one session of measuring.
type Report struct {
	// Title is the heading of the HTML page.
	Title string
	// Command is the command line of the session.
	Command string
	Started time.Time
	Machine process.Machine
	// Entries are the targets. The first is compared with each of the others.
	Entries []*loadgen.Entry
}

// percentiles are the percentiles of the latency that reports show.
var percentiles = []struct {
	name  string
	value float64
}{
	{"p50", 50},
	{"p90", 90},
	{"p99", 99},
	{"p99.9", 99.9},
	{"p99.99", 99.99},
	{"max", 100},
}

// thresholds are the latencies for which reports count the slower commands.
var thresholds = []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}

// settings describes the load of a target in one line. The entry must have a round.
func settings(e *loadgen.Entry) string {
	o := &last(e).Options
	loop := fmt.Sprintf("closed loop, %d in flight per connection", o.Pipeline)
	if o.Rate > 0 {
		loop = fmt.Sprintf("open loop, %s commands a second", count(o.Rate))
	}
	length := o.Duration.String()
	if o.Count > 0 {
		length = count(float64(o.Count)) + " commands"
	}
	rounds := ""
	if n := len(e.Rounds); n > 1 {
		rounds = fmt.Sprintf("%d rounds of ", n)
	}
	return fmt.Sprintf("%s%s after %s of warm-up: %s, %d connections, keys %s", rounds, length, o.Warmup, loop, o.Connections, o.Keys)
}

// count formats an integer with thousands separators.
func count(v float64) string {
	digits := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}

// figure formats a number with three significant digits, or with all digits of its integer part if
// it has more. A number below 1 gets three decimal places, and 0, an unknown number, is "-".
func figure(v float64) string {
	switch {
	case v == 0:
		return "-"
	case math.Abs(v) >= 999.5:
		return count(v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case math.Abs(v) >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// ratio formats a ratio with its range, or "-" if the ratio is not known.
func ratio(s loadgen.Spread) string {
	if !s.Known() {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.Min, s.Max)
}

// Spread formats a figure, with its range if the rounds differ.
func Spread(s loadgen.Spread) string {
	if s.Min == s.Max {
		return figure(s.Median)
	}
	return fmt.Sprintf("%s (%s..%s)", figure(s.Median), figure(s.Min), figure(s.Max))
}

// last returns the last round of an entry, nil if it has none.
func last(e *loadgen.Entry) *loadgen.Result {
	if len(e.Rounds) == 0 {
		return nil
	}
	return e.Rounds[len(e.Rounds)-1]
}

func micros(ns int64) float64 { return float64(ns) / 1e3 }

// above returns how many commands of the entry took longer than d.
func above(e *loadgen.Entry, d time.Duration) int64 { return slower(e.Latency(), d) }

// slower returns how many values of h are above d.
func slower(h *hdrhistogram.Histogram, d time.Duration) int64 {
	var n int64
	for _, bar := range h.Distribution() {
		if bar.From > int64(d) {
			n += bar.Count
		}
	}
	return n
}
