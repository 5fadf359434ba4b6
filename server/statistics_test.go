package server_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// statistics are counts by the name of a metric and the values of its labels domain, key1 and key2.
type statistics map[string]int64

// exported returns what the exporter for Prometheus of ratelimit shows of recorded counters, by its default mapping. Counters
// of no rule are left out.
func exported(counters map[string]int64) statistics {
	is := statistics{}
	for name, n := range counters {
		name, of := strings.CutPrefix(name, "ratelimit.service.rate_limit.")
		at := strings.LastIndexByte(name, '.')
		if path, what := name[:max(at, 0)], name[at+1:]; of && what != "domain_not_found" {
			labels := append(strings.SplitN(path, ".", 4), "", "")
			is[fmt.Sprintf("ratelimit_service_rate_limit_%s %q", what, labels[:3])] += n
		}
	}
	return is
}

// statisticsOf returns those of a server that are not 0.
func statisticsOf(s *server.Server) statistics {
	is, view := statistics{}, s.Engine().Figures.View()
	for _, f := range server.Figures() {
		if f.Bare {
			view.Each(f.Name, func(value float64, labels ...string) {
				if value > 0 {
					is[fmt.Sprintf("%s %q", f.Name, labels)] += int64(value)
				}
			})
		}
	}
	return is
}

// sums returns the counts without the labels.
func (is statistics) sums() statistics {
	sums := statistics{}
	for name, n := range is {
		metric, _, _ := strings.Cut(name, " ")
		sums[metric] += n
	}
	return sums
}

// without returns the counts but for those of metrics that end in one of the names.
func (is statistics) without(names ...string) statistics {
	rest := maps.Clone(is)
	maps.DeleteFunc(rest, func(name string, _ int64) bool {
		metric, _, _ := strings.Cut(name, " ")
		return slices.ContainsFunc(names, func(of string) bool { return strings.HasSuffix(metric, "_"+of) })
	})
	return rest
}

// compare requires that got are the statistics want of a recording about a feature, where they can be.
func compare(t *testing.T, feature string, want, got statistics) {
	t.Helper()
	want = want.without("over_limit_with_local_cache")
	switch feature {
	case "dhits", "hits", "near", "quota", "stop": // all hits of a call that is over are over
		crossing := []string{"over_limit", "near_limit", "shadow_mode"}
		require.Equal(t, want.without(crossing...), got.without(crossing...))
		for name, n := range got.sums().without("near_limit") {
			require.GreaterOrEqual(t, n, want.sums()[name], name)
		}
	case "collide", "metric", "share": // there is no series of a key or value of a request
		require.Equal(t, want.sums(), got.sums())
	case "override", "mixed": // limits of requests are not counted
		for name, n := range got.sums().without("over_limit", "shadow_mode") {
			require.LessOrEqual(t, n, want.sums()[name], name)
		}
	default:
		require.Equal(t, want, got)
	}
}

// TestRecordedStatisticsOfRatelimit asks servers what envoyproxy/ratelimit was asked, and compares their metrics with the
// statistics of ratelimit. All series are those of rules.
func TestRecordedStatisticsOfRatelimit(t *testing.T) {
	most := effort.Steps(1, 100) // cases of each file
	names, err := filepath.Glob("../rls/testdata/envoy-*.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, names, 24)
	for _, name := range names {
		for i, rowsOf := range recordedCases(t, name) {
			if i >= most {
				break
			}
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				is, last := &rowsOf[0], len(rowsOf)-1
				flags := append(flagsOf(t, is), "--rls-metrics", "ratelimit")
				if ratio := is.Settings["NEAR_LIMIT_RATIO"]; ratio != "" {
					percent, err := strconv.ParseFloat(ratio, 64)
					require.NoError(t, err)
					flags = append(flags, "--metrics-near-limit", strconv.Itoa(int(percent*100)))
				}
				s := w.Still(limit.Instant(rowsOf[1].At*1e9), nil, flags...)
				w.Settle()
				web, url := w.HTTP(w.Host()), "http://"+s.HTTPAddr().String()+"/json"
				for _, row := range rowsOf[1:last] {
					s.Clock.Set(limit.Instant(row.At * 1e9))
					posts(t, web, url, string(row.Req))
				}
				got := statisticsOf(s.Server.Server)
				compare(t, is.Feature, exported(rowsOf[last].Stats), got)

				of := map[string]bool{}
				for _, r := range s.Rules() {
					n := r.Series()
					of[fmt.Sprintf("%q", []string{n.Domain, n.Key1, n.Key2})] = true
				}
				for name := range got {
					_, labels, _ := strings.Cut(name, " ")
					require.True(t, of[labels], name)
				}
			})
		}
	}
}
