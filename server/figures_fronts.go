package server

import (
	"fmt"
	"slices"
	"time"

	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/rls"
)

// frontFigures returns the figures of http-port and of the rules. A server without the option does not emit them.
func frontFigures() []figure.Figure {
	return slices.Concat(ruleFigures(), []figure.Figure{
		{
			Name: "http_requests_total", Kind: figure.Counter, Labels: []string{"code"},
			Values: "`200`, `400`, `401`, `403`, `404`, `429`, `500`, `503`, `other`",
			Help:   "Requests to http-port by the status of the response. A denial is one of 429, also where the parameter deny of a check says another status. Absent without the option http-port.",
			Info:   figure.Prefixed("Stats", "http_requests_"),
			Read: func(v *figure.View, emit figure.Emit) {
				if port := figure.Of[*Server](v).http.port; port != nil {
					port.Responses(func(code string, n int64) { emit(float64(n), code) })
				}
			},
		},
		{
			Name: "rls_requests_total", Kind: figure.Counter, Labels: []string{"domain", "code"},
			Values: "`ok`, `over_limit`, `invalid_argument`, `permission_denied`, `unknown`, `unavailable`",
			Help:   "Requests of Envoy's rate limit service by the domain and the code of the answer. Domains beyond 100, those without rules, and errors have the domain other. Absent without the options rls-config and limitador-limits.",
			Read: func(v *figure.View, emit figure.Emit) {
				for _, c := range figure.Of[*Server](v).service.counts.Snapshot() {
					emit(float64(c.Calls), c.Domain, c.Code.String())
				}
			},
		},
	}, ratelimitFigures())
}

// ratelimitFigures returns the statistics of envoyproxy/ratelimit by rule, as its exporter for Prometheus names them.
func ratelimitFigures() []figure.Figure {
	of := func(name, help string, read func(*rls.Hits) int64) figure.Figure {
		return figure.Figure{
			Name: "ratelimit_service_rate_limit_" + name, Bare: true, Kind: figure.Counter, Labels: []string{"domain", "key1", "key2"},
			Values: fmt.Sprintf("domain and first two steps of a rule; `other` for the rules beyond %d of these", descriptors.MaxSeries),
			Help:   help + " Only with rls-metrics ratelimit.",
			Read: func(v *figure.View, emit figure.Emit) {
				s := figure.Of[*Server](v)
				if s.service.tally == nil {
					return
				}
				s.service.tally.Each(s.rulesInForce, func(name rls.Series, h rls.Hits) { emit(float64(read(&h)), name.Domain, name.Key1, name.Key2) })
			},
		}
	}
	return []figure.Figure{
		of("total_hits", "Hits of requests of Envoy's rate limit service that a rule limits.", func(h *rls.Hits) int64 { return h.Total }),
		of("over_limit", "Those of them that are over the limit, also where shadow_mode lets them pass. All hits of a call that is over count.", func(h *rls.Hits) int64 { return h.Over }),
		of("within_limit", "Those of them that are not.", func(h *rls.Hits) int64 { return h.Within }),
		of("near_limit", "Those of them within the limit, and beyond the part of it that metrics-near-limit says.", func(h *rls.Hits) int64 { return h.Near }),
		of("shadow_mode", "Those of them that are over the limit and pass because of shadow_mode.", func(h *rls.Hits) int64 { return h.Shadow }),
	}
}

// ruleFigures returns the figures of rules of files. A server without the option does not emit those of its files.
func ruleFigures() (all []figure.Figure) {
	for _, kind := range ruleKinds() {
		gauge := func(i int, help string, read func(s *Server, f *ruleFiles) float64) figure.Figure {
			return figure.Figure{
				Name: kind.figures[i], Kind: figure.Gauge, Info: figure.Field("Ratelimit", kind.figures[i]),
				Help: fmt.Sprintf(help, kind.option),
				Read: func(v *figure.View, emit figure.Emit) {
					s := figure.Of[*Server](v)
					for _, f := range s.rules {
						if f.option == kind.option {
							emit(read(s, f))
						}
					}
				},
			}
		}
		all = append(all,
			gauge(0, "1 while the rules in force are those of the files of %[1]s, 0 while these have a fault, and the rules before stay in force. Absent without the option %[1]s.",
				func(_ *Server, f *ruleFiles) float64 { return figure.Bit(f.fault.Load() == nil) }),
			gauge(1, "Time since the server has seen that the rules in force are those of the files of %[1]s, at which it looks each second. Absent without the option %[1]s.",
				func(s *Server, f *ruleFiles) float64 {
					return (s.stopwatch() - time.Duration(f.confirmed.Load())).Seconds()
				}),
			gauge(2, "Rules of the files of %[1]s that are in force: each is a policy. Absent without the option %[1]s.",
				func(_ *Server, f *ruleFiles) float64 { return float64(f.inForce.Load()) }),
		)
	}
	return all
}
