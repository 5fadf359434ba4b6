package metrics_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/metrics"
	"github.com/cellserver/cellserver/server"
)

// reader emits the value of a fake figure.
type reader func(*figure.View, figure.Emit)

// many emits n series: one for each value of the first label, with the other labels as given.
func many(name string, n int, others ...string) reader {
	return func(_ *figure.View, emit figure.Emit) {
		for i := range n {
			of := fmt.Sprintf("%s%d", name, i)
			if len(others) == 0 {
				emit(1, of)
			}
			for _, other := range others {
				emit(1, of, other)
			}
		}
	}
}

// rules emits the series of one of ratelimit's statistics for n rules.
func rules(n int) reader {
	return func(_ *figure.View, emit figure.Emit) {
		for i := range n {
			emit(1, "domain", fmt.Sprint("key", i), "")
		}
	}
}

// names emits a series for each value of the first label.
func names(values []string, others ...string) reader {
	return func(_ *figure.View, emit figure.Emit) {
		for _, of := range values {
			emit(1, append([]string{of}, others...)...)
		}
	}
}

// crowd returns for each figure with labels a reader that emits the most series that clients can
// cause, with the default options, on a machine with the default maximum of loops.
func crowd() map[string]reader {
	return map[string]reader{
		"build_info":                  func(_ *figure.View, emit figure.Emit) { emit(1, "1", "00000000", "7", "go") },
		"loop_busy_ratio":             many("loop", 8),
		"clients":                     many("state", 3),
		"memory_bytes":                many("kind", 8),
		"replicas":                    many("state", 3),
		"store_nodes":                 many("state", 2),
		"store_unanswered_total":      many("policy", 3),
		"keys":                        many("db", 16),
		"policies":                    many("kind", 3),
		"connections_total":           many("result", 2),
		"acl_denied_total":            many("reason", 4),
		"net_bytes_total":             many("direction", 2),
		"commands_total":              many("command", 400),
		"command_failures_total":      many("CODE", 200),
		"user_commands_total":         many("user", 51),
		"decisions_total":             many("limiter", 6, "allowed", "denied", "error"),
		"group_decisions_total":       many("group", 102, "allowed", "denied"),
		"group_near_limit_total":      many("group", 102),
		"http_requests_total":         many("code", 9),
		"rls_requests_total":          many("domain", 101, "ok", "over_limit"),
		"policy_calls_total":          many("result", 9),
		"policy_notices_total":        many("result", 2),
		"policy_reserved_units_total": many("kind", 2),
		"policy_decisions_total":      many("policy", 200, "allowed", "denied"),
	}
}

// fronts are figures that are absent with the default options, which open no port of another protocol and name no rules.
var fronts = []string{
	"http_requests_total", "rls_requests_total",
	"rls_config_ok", "rls_config_age_seconds", "rls_rules",
	"limitador_limits_ok", "limitador_limits_age_seconds", "limitador_limits",
}

// registry returns the figures of a server with fake readers. The given ones replace those of
// crowd.
func registry(t testing.TB, given map[string]reader) *figure.Registry {
	t.Helper()
	doubles := crowd()
	for name, double := range given {
		doubles[name] = double
	}
	var all []figure.Figure
	for _, f := range server.Figures() {
		switch double := doubles[f.Name]; {
		case f.Spread != nil:
			classes, bounds := [][]string{{}}, 9
			if len(f.Labels) > 0 {
				classes, bounds = [][]string{{"fast"}, {"slow"}, {"script"}}, 10
			}
			f.Spread = func(_ *figure.View, emit func(figure.Buckets, ...string)) {
				for _, labels := range classes {
					b := figure.Buckets{Count: 3, Sum: 1, Below: map[float64]uint64{}}
					for i := range bounds {
						b.Below[float64(i)] = 1
					}
					emit(b, labels...)
				}
			}
		case double != nil:
			f.Read = double
		case f.Bare:
			f.Read = rules(descriptors.MaxSeries + 1)
		case len(f.Labels) == 0:
			f.Read = func(_ *figure.View, emit figure.Emit) { emit(1) }
		default:
			require.Empty(t, f.Name, "how many series a figure with labels has must be said in crowd")
		}
		all = append(all, f)
	}
	return figure.New(all...)
}

// handler serves a registry of fake figures.
func handler(t testing.TB, given map[string]reader) http.Handler {
	return metrics.Handler(registry(t, given), slog.New(slog.DiscardHandler))
}

// scrape returns the page that Prometheus gets.
func scrape(t testing.TB, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

// seriesIn returns the number of series on a page.
func seriesIn(page string) (n int) {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// TestSeriesAreBounded: the bound holds in the worst case, and a value that has had a series keeps
// it.
func TestSeriesAreBounded(t *testing.T) {
	backwards := false
	given := map[string]reader{"commands_total": func(_ *figure.View, emit figure.Emit) {
		for i := range 400 {
			if backwards {
				i = 399 - i
			}
			emit(1, fmt.Sprintf("command%d", i))
		}
	}}
	for _, f := range server.Figures() {
		if slices.Contains(fronts, f.Name) || f.Bare {
			given[f.Name] = func(*figure.View, figure.Emit) {}
		}
	}
	h := handler(t, given)
	first := scrape(t, h)
	require.LessOrEqual(t, seriesIn(first), metrics.MaxSeries)
	require.Greater(t, seriesIn(first), metrics.MaxSeries-50, "the bound is no larger than it has to be")
	require.Contains(t, first, `cellserver_commands_total{command="other"}`)
	backwards = true
	require.Equal(t, first, scrape(t, h), "no series comes or goes")
}

// TestOddNamesAreShown: names that are not UTF-8, are long, or contain characters that the format
// quotes. Such a name must not remove the metrics of others.
func TestOddNamesAreShown(t *testing.T) {
	odd := []string{"\xff\xfe", `quo"te`, "line\nend", "back\\slash", strings.Repeat("long", 1000), "", "other", "größe", "\x00", "{}", "emoji🙂", "\u202eright to left"}
	page := scrape(t, handler(t, map[string]reader{
		"user_commands_total": names(odd), "command_failures_total": names(odd), "commands_total": names(nil),
	}))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	require.NoError(t, err)
	require.Len(t, families["cellserver_user_commands_total"].GetMetric(), len(odd))
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				require.LessOrEqual(t, len(label.GetValue()), 600, "%s", family.GetName())
			}
		}
	}
}

// TestEveryFigureIsThereOnce: every figure appears once, and its help is a sentence.
func TestEveryFigureIsThereOnce(t *testing.T) {
	seen := make(map[string]bool)
	page := scrape(t, handler(t, nil))
	for _, f := range metrics.Named(server.Figures()) {
		require.False(t, seen[f.Name], f.Name)
		seen[f.Name] = true
		require.Regexp(t, `^[A-Z0-9].*\.$`, f.Help)
		if !f.Bare {
			require.Equal(t, f.Kind == figure.Counter, strings.HasSuffix(f.Name, "_total"), f.Name)
		}
		require.Contains(t, page, "# TYPE "+metrics.NameOf(&f)+" "+string(f.Kind)+"\n")
	}
}

// BenchmarkScrape measures a scrape with the maximum number of series.
func BenchmarkScrape(b *testing.B) {
	h := handler(b, nil)
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		b.ReportMetric(float64(w.Body.Len()), "bytes")
	}
}
