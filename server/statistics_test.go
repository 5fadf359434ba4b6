package server_test

import (
	"fmt"
	"path/filepath"
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

// TestRecordedStatisticsOfRatelimit asks servers what envoyproxy/ratelimit was asked, and compares their metrics with those of
// ratelimit.
func TestRecordedStatisticsOfRatelimit(t *testing.T) {
	most := effort.Steps(1, 100) // cases of each file
	names, err := filepath.Glob("../rls/testdata/envoy-*.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, names, 24)
	for _, name := range names {
		differ, all := 0, 0
		for i, rowsOf := range recordedCases(t, name) {
			if i >= most {
				break
			}
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				is := &rowsOf[0]
				s := w.Still(limit.Instant(rowsOf[1].At*1e9), nil, append(flagsOf(t, is), "--rls-metrics", "ratelimit")...)
				w.Settle()
				web, url := w.HTTP(w.Host()), "http://"+s.HTTPAddr().String()+"/json"
				for _, row := range rowsOf[1:] {
					if row.Req == nil {
						want, got := exported(row.Stats), statisticsOf(s.Server.Server)
						for k, n := range want {
							all++
							if got[k] != n {
								differ++
								t.Logf("%s %s: want %d got %d", is.Case, k, n, got[k])
							}
						}
						for k, n := range got {
							if want[k] == 0 {
								differ++
								t.Logf("%s %s: want 0 got %d", is.Case, k, n)
							}
						}
						continue
					}
					s.Clock.Set(limit.Instant(row.At * 1e9))
					posts(t, web, url, string(row.Req))
				}
			})
		}
		t.Logf("%s: %d of %d differ", name, differ, all)
	}
}
