package admin

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// routes puts the handlers together.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", s.healthz)
	mux.HandleFunc("/readyz", s.readyz)
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
	return s.guarded(mux)
}

// healthTime is within which every event loop has to answer.
const healthTime = 5 * time.Second

func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTime)
	defer cancel()
	why := ""
	if s.Healthy != nil {
		why = s.Healthy(ctx)
	}
	probe(w, why)
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	why := ""
	if s.Ready != nil {
		why = s.Ready()
	}
	probe(w, why)
}

// probe answers "ok", or 503 and why not.
func probe(w http.ResponseWriter, why string) {
	if why != "" {
		refuse(w, http.StatusServiceUnavailable, why)
		return
	}
	refuse(w, http.StatusOK, "ok")
}

// maxProfile is how long a profile may take.
const maxProfile = 2 * time.Minute

// profile is /debug/pprof/.
func profile(w http.ResponseWriter, r *http.Request) {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
		refuse(w, http.StatusInternalServerError, "no profile can be sent")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxProfile)
	defer cancel()
	r = r.WithContext(ctx)
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline": // it may have a password in it
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
