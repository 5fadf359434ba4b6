package server

import (
	"context"
	"net"
	"slices"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/login"
	"github.com/cellserver/cellserver/front/web"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/direct"
)

// httpPort is the port for decisions over HTTP. If the server has none, port is nil and there are no listeners.
type httpPort struct {
	port      *web.Server
	listeners []net.Listener
}

// openHTTP creates the port for decisions over HTTP, if one is configured. It returns the errors of openFront.
func (s *Server) openHTTP() error {
	listeners, over, err := s.openFront("http", s.config.HTTPAddresses())
	if err != nil || listeners == nil {
		return err
	}
	conf := s.httpConfig()
	conf.TLS = over
	s.http.listeners, s.http.port = listeners, web.New(conf)
	return nil
}

func (s *Server) httpConfig() web.Config {
	c := s.config
	w := web.Config{
		Open:      s.openClient,
		Door:      login.New(s.engine.Users, adminLogins{s}),
		Certified: s.engine.Certified,
		User:      func() (string, bool) { return s.frontUser("http-user") },
		Limits:    s.limitsOf,
		Style:     headers.Style(slices.Index(headers.Styles, c.Value("http-headers"))),
		Gateway:   web.Gateway(slices.Index(web.Gateways, c.Value("http-gateway"))),
		Trusted:   c.HTTPTrusted(),
		Log:       s.log,
	}
	if len(s.rules) > 0 {
		w.Service, w.NotReady = s.descriptors(), s.healthNotReady
	}
	return w
}

// openClient opens a client of the server for a connection to the port.
func (s *Server) openClient(p web.Peer) (web.Caller, error) {
	c, err := s.openDirect(direct.Origin{Remote: p.Remote, Local: p.Local, Library: "http", Gone: p.Gone, Kept: p.Kept})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// makeRoom closes the connection to http-port that has been idle for longest. It returns false if there is none.
func (s *Server) makeRoom() bool { return s.http.port != nil && s.http.port.CloseIdle() }

// limitsOf appends the clauses of the limits that apply to key under the policy called name. blocked says that a
// block applies, and known that there is such a policy.
func (s *Server) limitsOf(name, key []byte, dst []web.Limit) (limits []web.Limit, blocked, known bool) {
	p := s.policies.registry.Table().Policy(name)
	if p == nil {
		return dst, false, false
	}
	var (
		a   policy.Applied
		now = s.engine.Options.Now()
	)
	if ratelimit.FindApplied(p, key, now, &a) != nil {
		return dst, false, true // such a key is not an address, so it has no limits
	}
	clauses := p.InForce(&a).Clauses
	for i := range clauses {
		dst = append(dst, limitOf(&clauses[i], now))
	}
	return dst, a.Block != nil && a.Exempt == nil, true
}

// limitOf describes a clause. Only a window that does not follow the calendar has a length.
func limitOf(c *policy.Clause, now limit.Instant) (l web.Limit) {
	l.Concurrent, l.Unlimited = c.Kind == clause.Lease, c.Kind == clause.Unlimited
	if c.Kind == clause.Window && c.Window.Mode != slidingwindow.Calendar {
		l.Window = c.Length(0, now)
	}
	return l
}

// serveHTTP starts to serve the listeners of the port. For each listener it calls start with a function that serves
// the listener until endHTTP, and then calls fail with the error of the listener.
func (s *Server) serveHTTP(start func(f func()), fail func(error)) {
	for _, l := range s.http.listeners {
		start(func() {
			if err := s.http.port.Serve(l); err != nil {
				fail(err)
			}
		})
	}
	if s.http.port != nil {
		s.log.Info("http-port accepts connections", "addresses", addressesOf(s.http.listeners))
	}
}

// endHTTP closes the port and waits for its requests. When ctx ends it waits no longer.
func (s *Server) endHTTP(ctx context.Context) {
	if s.http.port != nil {
		_ = s.http.port.Shutdown(ctx) // an error of closing listeners and connections does not matter any more
	}
}

// HTTPAddr returns the address of the first listener of http-port, or nil if there is none.
func (s *Server) HTTPAddr() net.Addr {
	if len(s.http.listeners) == 0 {
		return nil
	}
	return s.http.listeners[0].Addr()
}

// Traffic returns the counters of the transport since the start: the sums over all connections, and over the clients of
// ports that do not speak the Redis protocol. It returns zeros before there is a transport.
func (s *Server) Traffic() (t transport.Stats) {
	if s.transport != nil {
		t = s.transport.Stats()
	}
	if s.direct != nil {
		t.Add(s.direct.Stats())
	}
	return t
}
