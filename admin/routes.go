package admin

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

func (s *Server) routes() http.Handler {
	probes, mux := http.NewServeMux(), http.NewServeMux()
	probes.HandleFunc("/healthz", s.healthz)
	probes.HandleFunc("/readyz", s.readyz)
	probes.Handle("/", s.bounded(mux))
	if s.Metrics != nil {
		metrics := s.Metrics
		if !s.AnonymousMetrics {
			metrics = s.needs("info", metrics)
		}
		mux.Handle("/metrics", metrics)
	}
	if s.Pprof {
		mux.Handle("/debug/pprof/", s.needs("debug", http.HandlerFunc(profile)))
	}
	if s.API != nil {
		mux.Handle(apiPath, s.needs("info", s.API))
	}
	if s.Page != nil {
		mux.Handle("/", s.needs("info", s.Page))
	}
	return s.guarded(probes)
}

// bounded returns a handler that passes at most MaxConnections requests at once on to h. It refuses
// a further request and closes its connection, because a connection without a place here would take
// one of ProbeConnections.
func (s *Server) bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.serving <- struct{}{}:
			defer func() { <-s.serving }()
			h.ServeHTTP(w, r)
		default:
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "too many requests at once")
		}
	})
}

// healthTime is the time within which Healthy has to return for the server to be healthy, and
// readyTime the time within which Ready has to return for it to be ready. By default an
// orchestrator abandons a probe after a second.
const (
	healthTime = 5 * time.Second
	readyTime  = time.Second
)

func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTime)
	defer cancel()
	why := ""
	if s.Healthy != nil {
		why = s.Healthy(ctx)
	}
	probe(w, why)
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	why := ""
	if s.Ready != nil {
		why = s.Ready(ctx)
	}
	probe(w, why)
}

// probe replies with "ok" if why is "", and otherwise with the status 503 and why.
func probe(w http.ResponseWriter, why string) {
	if why != "" {
		refuse(w, http.StatusServiceUnavailable, why)
		return
	}
	refuse(w, http.StatusOK, "ok")
}

// maxProfile is the maximum duration of a profile.
const maxProfile = 2 * time.Minute

// profile serves /debug/pprof/. It ends a profile after maxProfile, and refuses cmdline, since a
// command line may contain a password.
func profile(w http.ResponseWriter, r *http.Request) {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
		refuse(w, http.StatusInternalServerError, "no profile can be sent")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxProfile)
	defer cancel()
	r = r.WithContext(ctx)
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline": // the command line may contain a password
		refuse(w, http.StatusNotFound, "the command line is not shown")
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}
