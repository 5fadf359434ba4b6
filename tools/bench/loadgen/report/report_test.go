package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

var started = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// result returns a run of n commands. Their latencies rise evenly to slowest, except for the last
// one, which is fifty times as long.
func result(t *testing.T, target, command string, n int, slowest, cpu time.Duration) *loadgen.Result {
	t.Helper()
	mix, err := loadgen.ParseMix([]string{command}, loadgen.Shape{MinQuantity: 1, MaxQuantity: 1})
	require.NoError(t, err)
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for i := range n - 1 {
		require.NoError(t, h.RecordValue(int64(slowest)*int64(i+1)/int64(n)))
	}
	require.NoError(t, h.RecordValue(int64(slowest)*50))
	return &loadgen.Result{
		Target: target, Address: "127.0.0.1:6379", Server: "redis 7.0.15", Started: started, Elapsed: time.Second, CPU: cpu,
		Latency: h, Lag: hdrhistogram.New(1, int64(time.Minute), 3), MemoryBefore: 10e6, MemoryAfter: 66e6,
		Options: loadgen.Options{
			Mix: mix, Keys: loadgen.KeySpec{Kind: loadgen.KeyUniform, Count: 1000}, Connections: 50, Threads: 2, Pipeline: 32,
			Duration: time.Second, Warmup: 100 * time.Millisecond, Seed: 1,
		},
		Commands: []loadgen.CommandResult{{Command: command, Weight: 1, Latency: h}},
	}
}

// sample is a comparison that fills every part of a report.
func sample(t *testing.T) *report.Report {
	t.Helper()
	ours := &loadgen.Entry{Name: "ours"}
	for i := range 3 {
		r := result(t, "ours", "CL.THROTTLE user:{key} 15 30 60", 100_000+1000*i, 200*time.Microsecond, time.Duration(400+10*i))
		c := &r.Commands[0]
		c.Limiter, c.Allowed, c.Denied, c.Granted = true, 60_000, 40_000, 60_000
		r.Checks = []loadgen.Check{{Limit: "GCRA, 16 at once and one per 2s", Command: c.Command, Bound: 17, Span: time.Second, Keys: 1000, Most: 16 + int64(i)}}
		if i == 2 {
			r.Checks[0].Violations, r.Checks[0].Worst = 1, []loadgen.Excess{{Key: 7, Granted: 18}}
		}
		ours.Rounds = append(ours.Rounds, r)
	}
	redis := &loadgen.Entry{Name: "redis <b>SET</b>"}
	for i := range 3 {
		redis.Rounds = append(redis.Rounds, result(t, redis.Name, "SET {key} x", 50_000+500*i, 400*time.Microsecond, time.Duration(800+5*i)))
	}
	bad := redis.Rounds[1]
	bad.Commands[0].Errors, bad.Commands[0].FirstError, bad.Unanswered = 2, "OOM <full>", 1
	flood := &loadgen.Entry{Name: "flood", Rounds: []*loadgen.Result{result(t, "flood", "SET {key} x", 1_000_000, time.Millisecond, 0)}}
	o := &flood.Rounds[0].Options
	o.Keys, o.Warmup, o.Count, o.Rate = loadgen.KeySpec{Kind: loadgen.KeyFlood}, 0, 1_000_000, 60_000
	require.NoError(t, flood.Rounds[0].Lag.RecordValues(700, 1_000_000))
	second := flood.Rounds[0].Commands[0]
	second.Command, second.Weight = "GET {key}", 2
	flood.Rounds[0].Commands = append(flood.Rounds[0].Commands, second)
	return &report.Report{
		Title: "A & B", Command: "cellbench compare --target '<x>'", Started: started,
		Machine: process.Machine{Processor: "Test CPU", Cores: 4, System: "linux/amd64", Go: "go1.26"},
		Entries: []*loadgen.Entry{ours, redis, flood},
	}
}

// golden compares the output of write with a file of testdata.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./loadgen/report -update writes it anew")
}

func TestTable(t *testing.T)    { golden(t, "report.txt", sample(t).Table) }
func TestMarkdown(t *testing.T) { golden(t, "report.md", sample(t).Markdown) }

func TestJSON(t *testing.T) {
	golden(t, "report.json", sample(t).JSON)
	var b bytes.Buffer
	require.NoError(t, sample(t).JSON(&b))
	var read struct {
		Targets []struct {
			Name  string `json:"name"`
			Curve []struct {
				Percentile float64 `json:"percentile"`
				US         float64 `json:"us"`
			} `json:"curve"`
		} `json:"targets"`
		Ratios []struct {
			Target, DividedBy string
			CPU               loadgen.Spread `json:"cpu_per_command"`
		} `json:"ratios"`
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &read))
	require.Len(t, read.Targets, 3)
	curve := read.Targets[0].Curve
	require.InDelta(t, 50, curve[0].Percentile, 0)
	require.InDelta(t, 100, curve[len(curve)-1].Percentile, 0)
	for i := 1; i < len(curve); i++ {
		require.Greater(t, curve[i].Percentile, curve[i-1].Percentile)
		require.GreaterOrEqual(t, curve[i].US, curve[i-1].US)
	}
	require.InDelta(t, 0.51, read.Ratios[0].CPU.Median, 0.01)
}

func TestHTML(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample(t).HTML(&b))
	page := b.String()
	require.Equal(t, 2, strings.Count(page, "<svg"), "the latencies and the cost")
	require.Equal(t, strings.Count(page, "<svg"), strings.Count(page, "</svg>"))
	require.NotContains(t, page, "<?xml")
	require.NotContains(t, page, "<b>", "names are text")
	require.Contains(t, page, "redis &lt;b&gt;SET&lt;/b&gt;")
	require.Contains(t, page, "<title>A &amp; B</title>")
	for _, text := range []string{"CL.THROTTLE user:{key} 15 30 60", "VIOLATED", "OOM &lt;full&gt;", "99.99", "percentile", "Test CPU"} {
		require.Contains(t, page, text)
	}

	remote := regexp.MustCompile(`(?i)<(script|link|img|iframe|object|embed|base)\b|\bsrc\s*=|@import|url\(|\bon\w+\s*=`)
	require.Empty(t, remote.FindAllString(page, -1), "the page needs nothing but itself")
	for _, address := range regexp.MustCompile(`https?://[^"' ]+`).FindAllString(page, -1) {
		require.Contains(t, address, "http://www.w3.org/", "only the names of XML's own namespaces look like addresses")
	}
}

func TestHTMLOfNothing(t *testing.T) {
	r := &report.Report{Title: "empty", Entries: []*loadgen.Entry{{Name: "a"}}}
	var b bytes.Buffer
	require.NoError(t, r.HTML(&b))
	require.NotContains(t, b.String(), "<svg")
	require.NoError(t, r.Table(io.Discard))
	require.NoError(t, r.JSON(io.Discard))
}

func TestSweep(t *testing.T) {
	s := sample(t)
	steps := []report.Step{
		{Label: "P=1", Comparison: &loadgen.Comparison{Entries: s.Entries[:2]}},
		{Label: "P=32", Comparison: &loadgen.Comparison{Entries: s.Entries[:2]}},
	}
	golden(t, "sweep.md", func(w io.Writer) error { return report.Sweep(w, steps, true) })
	require.NoError(t, report.Sweep(io.Discard, nil, false))
}

func TestMemory(t *testing.T) {
	idle := []*loadgen.IdleResult{{Target: "ours", Connections: 10_000, Before: 12e6, After: 21e6}}
	run := result(t, "ours", "PING", 1000, time.Millisecond, 0)
	expiry := []*loadgen.ExpiryResult{
		{Target: "ours", Keys: 1e6, Gone: 171 * time.Millisecond, Empty: 10e6, Full: 62e6, After: 18e6, Quiet: run, During: run},
		{Target: "other", Keys: 1e6, Gone: -1, Quiet: run, During: run},
	}
	golden(t, "memory.txt", func(w io.Writer) error {
		if err := report.Idle(w, idle, false); err != nil {
			return err
		}
		return report.Expiry(w, expiry, true)
	})
}
