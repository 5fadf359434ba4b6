package report

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// The types below define the JSON form. The name of a time contains its unit. Unknown values are
// omitted.

type jsonReport struct {
	Title   string          `json:"title"`
	Command string          `json:"command"`
	Started time.Time       `json:"started"`
	Machine process.Machine `json:"machine"`
	Targets []jsonTarget    `json:"targets"`
	Ratios  []jsonRatio     `json:"ratios,omitempty"`
}

type jsonTarget struct {
	Name        string             `json:"name"`
	Address     string             `json:"address"`
	Server      string             `json:"server,omitempty"`
	Loop        string             `json:"loop"`
	Connections int                `json:"connections"`
	Threads     int                `json:"threads"`
	Pipeline    int                `json:"pipeline,omitempty"`
	Rate        float64            `json:"rate,omitempty"`
	Keys        string             `json:"keys"`
	Seed        uint64             `json:"seed"`
	WarmupS     float64            `json:"warmup_s"`
	Rounds      []jsonRound        `json:"rounds"`
	PerSecond   loadgen.Spread     `json:"per_second"`
	CPU         *loadgen.Spread    `json:"cpu_us_per_command,omitempty"`
	LatencyUS   map[string]float64 `json:"latency_us"`
	MeanUS      float64            `json:"latency_mean_us"`
	LagUS       map[string]float64 `json:"lag_us,omitempty"`
	Over        map[string]int64   `json:"over"`
	Curve       []point            `json:"curve"`
	Checks      []loadgen.Check    `json:"checks,omitempty"`
	Faults      []string           `json:"faults,omitempty"`
}

type jsonRound struct {
	Started      time.Time          `json:"started"`
	ElapsedS     float64            `json:"elapsed_s"`
	Count        int64              `json:"count"`
	PerSecond    float64            `json:"per_second"`
	CPU          float64            `json:"cpu_us_per_command,omitempty"`
	LatencyUS    map[string]float64 `json:"latency_us"`
	Unanswered   int64              `json:"unanswered"`
	MemoryBefore int64              `json:"memory_before,omitempty"`
	MemoryAfter  int64              `json:"memory_after,omitempty"`
	BytesPerKey  float64            `json:"bytes_per_key,omitempty"`
	Commands     []jsonCommand      `json:"commands"`
}

type jsonCommand struct {
	Command   string             `json:"command"`
	Weight    int                `json:"weight"`
	Count     int64              `json:"count"`
	Errors    int64              `json:"errors"`
	Malformed int64              `json:"malformed"`
	Allowed   *int64             `json:"allowed,omitempty"`
	Denied    *int64             `json:"denied,omitempty"`
	Granted   *int64             `json:"granted_units,omitempty"`
	LatencyUS map[string]float64 `json:"latency_us"`
}

type jsonRatio struct {
	Target    string          `json:"target"`
	DividedBy string          `json:"divided_by"`
	PerSecond loadgen.Spread  `json:"per_second"`
	CPU       *loadgen.Spread `json:"cpu_per_command,omitempty"`
	P50       loadgen.Spread  `json:"p50"`
	P99       loadgen.Spread  `json:"p99"`
	P999      loadgen.Spread  `json:"p99.9"`
}

// point is one point of a latency curve.
type point struct {
	Percentile float64 `json:"percentile"`
	US         float64 `json:"us"`
}

// JSON writes a report as JSON.
func (r *Report) JSON(w io.Writer) error {
	out := jsonReport{Title: r.Title, Command: r.Command, Started: r.Started, Machine: r.Machine}
	for i, e := range r.Entries {
		out.Targets = append(out.Targets, target(e))
		if i > 0 {
			out.Ratios = append(out.Ratios, ratioOf(r.Entries[0], e))
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(out)
}

func target(e *loadgen.Entry) jsonTarget {
	h := e.Latency()
	t := jsonTarget{
		Name: e.Name, Loop: "closed", PerSecond: e.Of(loadgen.PerSecond), CPU: known(e.Of(loadgen.CPU)),
		LatencyUS: quantiles(h), MeanUS: thousandths(h.Mean() / 1e3), Over: make(map[string]int64), Curve: curve(h),
		Checks: e.Checks(), Faults: e.Faults(),
	}
	if lag := e.Lag(); lag.TotalCount() > 0 {
		t.LagUS = quantiles(lag)
	}
	for _, d := range thresholds {
		t.Over[d.String()] = above(e, d)
	}
	if last := last(e); last != nil {
		o := &last.Options
		t.Address, t.Server = last.Address, last.Server
		t.Connections, t.Threads, t.Pipeline, t.Rate = o.Connections, o.Threads, o.Pipeline, o.Rate
		t.Keys, t.Seed, t.WarmupS = o.Keys.String(), o.Seed, o.Warmup.Seconds()
		if o.Rate > 0 {
			t.Loop, t.Pipeline = "open", 0
		}
	}
	for _, r := range e.Rounds {
		t.Rounds = append(t.Rounds, round(r))
	}
	return t
}

func round(r *loadgen.Result) jsonRound {
	out := jsonRound{
		Started: r.Started, ElapsedS: r.Elapsed.Seconds(), Count: r.Count(), PerSecond: thousandths(r.PerSecond()),
		CPU: loadgen.CPU(r), LatencyUS: quantiles(r.Latency), Unanswered: r.Unanswered,
		MemoryBefore: r.MemoryBefore, MemoryAfter: r.MemoryAfter, BytesPerKey: thousandths(r.BytesPerKey()),
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		j := jsonCommand{
			Command: c.Command, Weight: c.Weight, Count: c.Latency.TotalCount(), Errors: c.Errors, Malformed: c.Malformed,
			LatencyUS: quantiles(c.Latency),
		}
		if c.Limiter {
			j.Allowed, j.Denied, j.Granted = &c.Allowed, &c.Denied, &c.Granted
		}
		out.Commands = append(out.Commands, j)
	}
	return out
}

func ratioOf(e, other *loadgen.Entry) jsonRatio {
	return jsonRatio{
		Target: e.Name, DividedBy: other.Name,
		PerSecond: e.Ratio(other, loadgen.PerSecond), CPU: known(e.Ratio(other, loadgen.CPU)),
		P50: e.Ratio(other, loadgen.Percentile(50)), P99: e.Ratio(other, loadgen.Percentile(99)), P999: e.Ratio(other, loadgen.Percentile(99.9)),
	}
}

func known(s loadgen.Spread) *loadgen.Spread {
	if !s.Known() {
		return nil
	}
	return &s
}

func quantiles(h *hdrhistogram.Histogram) map[string]float64 {
	q := make(map[string]float64, len(percentiles))
	for _, p := range percentiles {
		q[p.name] = micros(h.ValueAtPercentile(p.value))
	}
	return q
}

// curve returns the latencies from the median to the slowest command, with ten points for every
// further nine of the percentile. It returns nil if h is empty.
func curve(h *hdrhistogram.Histogram) []point {
	total := float64(h.TotalCount())
	if total == 0 {
		return nil
	}
	var points []point
	for step := 0.0; ; step++ {
		rest := 0.5 * math.Pow(10, -step/10)
		if rest*total < 1 {
			break
		}
		p := 100 * (1 - rest)
		points = append(points, point{Percentile: p, US: micros(h.ValueAtPercentile(p))})
	}
	return append(points, point{Percentile: 100, US: micros(h.Max())})
}

// thousandths rounds to three decimal places, since further digits mean nothing.
func thousandths(v float64) float64 { return math.Round(v*1e3) / 1e3 }
