package metrics_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/metrics"
)

// many returns n counts.
func many(name string, n int) []metrics.Count {
	all := make([]metrics.Count, n)
	for i := range all {
		all[i] = metrics.Count{Of: fmt.Sprintf("%s%d", name, i), Value: 1}
	}
	return all
}

// worst are the figures of a server whose clients make as many series as they can: with the
// default options, on a machine with as many loops as there are by default.
func worst() metrics.Figures {
	f := metrics.Figures{
		Version: "1", RedisVersion: "7", GoVersion: "go", Loops: make([]float64, 8),
		Clients: many("state", 3), Memory: many("kind", 7), Keys: many("db", 16),
		Connections: many("result", 2), ACLDenied: many("reason", 4), Net: many("direction", 2),
		Commands: many("command", 400), Failures: many("CODE", 200), Users: append(many("user", 50), metrics.Count{Of: "other", Value: 1}),
	}
	f.Policies, f.PolicyCalls = many("kind", 3), many("result", 8)
	for i := range 6 {
		f.Decisions = append(f.Decisions, metrics.Decisions{Command: fmt.Sprint("limiter", i), Allowed: 1})
	}
	g := stats.NewGroups(stats.GroupOptions{Delimiter: ":", Max: 100})
	l := g.NewLane()
	for i := range 200 {
		l.Count(fmt.Appendf(nil, "group%d:", i), stats.Outcome{}, 100)
		l.Count([]byte("none"), stats.Outcome{}, 1)
	}
	l.Publish()
	f.Groups = g.Snapshot()
	var h stats.Histogram
	h.Add(time.Millisecond, 3)
	for i := range f.Durations {
		f.Durations[i].Add(&h)
	}
	return f
}

// scrape returns what Prometheus gets.
func scrape(t testing.TB, f func() metrics.Figures) string {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(f, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

// seriesIn counts the lines that are series.
func seriesIn(page string) (n int) {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// TestSeriesAreBounded: in the worst case, and what has had a series keeps it.
func TestSeriesAreBounded(t *testing.T) {
	f := metrics.Figures{Commands: []metrics.Count{{Of: "late", Value: 1}}}
	w := func() string {
		return scrape(t, func() metrics.Figures { return f })
	}
	require.Less(t, seriesIn(w()), 40)
	f = worst()
	h := metrics.Handler(func() metrics.Figures { return f }, slog.New(slog.DiscardHandler))
	read := func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	first := read()
	require.LessOrEqual(t, seriesIn(first), metrics.MaxSeries)
	require.Greater(t, seriesIn(first), metrics.MaxSeries-50, "the bound is no larger than it has to be")
	require.Contains(t, first, `cellserver_commands_total{command="other"}`)
	for i, j := 0, len(f.Commands)-1; i < j; i, j = i+1, j-1 {
		f.Commands[i], f.Commands[j] = f.Commands[j], f.Commands[i]
	}
	require.Equal(t, first, read(), "no series comes or goes")
}

// TestOddNamesAreShown: names that are not UTF-8, or long, or have what the format quotes. One
// such name must not cost the others their metrics.
func TestOddNamesAreShown(t *testing.T) {
	odd := []string{"\xff\xfe", `quo"te`, "line\nend", "back\\slash", strings.Repeat("long", 1000), "", "other", "größe", "\x00", "{}", "emoji🙂", "\u202eright to left"}
	f := worst()
	f.Users, f.Failures = nil, nil
	g := stats.NewGroups(stats.GroupOptions{Delimiter: ":", Max: 100})
	l := g.NewLane()
	for _, name := range odd {
		f.Users = append(f.Users, metrics.Count{Of: name, Value: 1})
		f.Failures = append(f.Failures, metrics.Count{Of: name, Value: 1})
		l.Count([]byte(name+":key"), stats.Outcome{}, 16)
	}
	l.Publish()
	f.Groups, f.Commands = g.Snapshot(), nil
	page := scrape(t, func() metrics.Figures { return f })
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	require.NoError(t, err)
	require.Len(t, families["cellserver_user_commands_total"].GetMetric(), len(odd))
	require.Len(t, families["cellserver_group_near_limit_total"].GetMetric(), len(odd))
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				require.LessOrEqual(t, len(label.GetValue()), 600, "%s", family.GetName())
			}
		}
	}
}

// TestEveryMetricIsInTheTableOnce, with a help that is a sentence.
func TestEveryMetricIsInTheTableOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range metrics.Table() {
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		require.Regexp(t, `^[A-Z0-9].*\.$`, m.Help)
		require.Equal(t, m.Kind == metrics.Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		require.Contains(t, scrape(t, worst), "# TYPE cellserver_"+m.Name+" "+string(m.Kind)+"\n")
	}
}

// BenchmarkScrape is one answer of /metrics with as many series as there can be.
func BenchmarkScrape(b *testing.B) {
	f := worst()
	h := metrics.Handler(func() metrics.Figures { return f }, slog.New(slog.DiscardHandler))
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		b.ReportMetric(float64(w.Body.Len()), "bytes")
	}
}
