package server

import (
	"time"

	"github.com/cellserver/cellserver/figure"
)

// frontFigures returns the figures of http-port and of the rules. A server without the option does not emit them.
func frontFigures() []figure.Figure {
	rules := func(read func(s *Server) float64) func(*figure.View, figure.Emit) {
		return func(v *figure.View, emit figure.Emit) {
			if s := figure.Of[*Server](v); s.config.Path("rls-config") != "" {
				emit(read(s))
			}
		}
	}
	return []figure.Figure{
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
			Name: "rls_config_ok", Kind: figure.Gauge, Info: figure.Field("Ratelimit", "rls_config_ok"),
			Help: "1 while the rules in force are those of the files of rls-config, 0 while these have a fault, and the rules before stay in force. Absent without the option rls-config.",
			Read: rules(func(s *Server) float64 { return figure.Bit(s.rules.fault.Load() == nil) }),
		},
		{
			Name: "rls_config_age_seconds", Kind: figure.Gauge, Info: figure.Field("Ratelimit", "rls_config_age_seconds"),
			Help: "Time since the server has seen that the rules in force are those of the files of rls-config, at which it looks each second. Absent without the option rls-config.",
			Read: rules(func(s *Server) float64 { return (s.stopwatch() - time.Duration(s.rules.confirmed.Load())).Seconds() }),
		},
		{
			Name: "rls_rules", Kind: figure.Gauge, Info: figure.Field("Ratelimit", "rls_rules"),
			Help: "Rules of the files of rls-config that are in force: each is a policy. Absent without the option rls-config.",
			Read: rules(func(s *Server) float64 { return float64(s.rulesInForce().Len()) }),
		},
		{
			Name: "rls_requests_total", Kind: figure.Counter, Labels: []string{"domain", "code"},
			Values: "`ok`, `over_limit`, `invalid_argument`, `permission_denied`, `unknown`, `unavailable`",
			Help:   "Requests of Envoy's rate limit service by the domain and the code of the answer. Domains beyond 100, those without rules, and errors have the domain other. Absent without the option rls-config.",
			Read: func(v *figure.View, emit figure.Emit) {
				for _, c := range figure.Of[*Server](v).service.counts.Snapshot() {
					emit(float64(c.Calls), c.Domain, c.Code.String())
				}
			},
		},
	}
}
