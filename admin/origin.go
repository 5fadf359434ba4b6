package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ActionHeader is a header that a POST must have, with any value. For a page of another origin a
// browser sends it only after a CORS preflight request, which this server always refuses.
const ActionHeader = "X-Cellserver-Action"

// hostAllowed reports whether a request may name host: an IP address, localhost, or a name in
// Config.Hosts. The owner of any other name could make it resolve to the address of this server, so
// that a page of that owner could read data that is for this network only (DNS rebinding).
func (s *Server) hostAllowed(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.Hosts, func(known string) bool {
		return known == "*" || strings.EqualFold(known, name)
	})
}

// sameOrigin reports whether r comes from a page of this port or from no page, or follows a link
// of any page and is no POST. If the port does not use TLS, the page may have an https address,
// because a proxy in front of the port may use TLS.
func (s *Server) sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return r.Method != http.MethodPost && r.Header.Get("Sec-Fetch-Mode") == "navigate" // the request comes from a link to this page
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	return strings.EqualFold(origin, "https://"+r.Host) ||
		r.TLS == nil && strings.EqualFold(origin, "http://"+r.Host)
}

// jsonPost reports whether a POST has the headers that only a page of this port or a program can
// set.
func jsonPost(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return r.Header.Get(ActionHeader) != "" && strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// guarded returns a handler that passes a request on to h only if no page of another origin can
// have caused it, except by a link. It also bounds the size of the body.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		post := r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, apiPath)
		switch {
		case !s.hostAllowed(r.Host):
			refuse(w, http.StatusForbidden, "the name of this host is not known: ask for the address, or put the name into admin-hosts")
		case !post && r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD are served here")
		case !s.sameOrigin(r):
			refuse(w, http.StatusForbidden, "a page of another origin may not ask this")
		case post && !jsonPost(r):
			refuse(w, http.StatusForbidden, "a POST needs the header "+ActionHeader+" and the type application/json")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
			h.ServeHTTP(w, r)
		}
	})
}
