package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/login"
	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/front/web"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/listen"
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

// openHTTP creates the port for decisions over HTTP, if one is configured. It uses inherited sockets, or else opens
// the addresses of the configuration. It returns an error if that fails, or if http-tls is yes and there is no
// certificate.
func (s *Server) openHTTP() error {
	addresses, inherited := s.config.HTTPAddresses(), s.given.Inherited["http-port"]
	if len(addresses) == 0 && len(inherited) == 0 {
		return nil
	}
	conf := s.httpConfig()
	if s.config.Yes("http-tls") {
		if s.tls.http.Load() == nil {
			return errors.New("http-tls needs a certificate: set tls-cert-file and tls-key-file")
		}
		conf.TLS = &tls.Config{
			MinVersion:             tls.VersionTLS12,
			SessionTicketsDisabled: true, // as for the admin port
			GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.http.Load(), nil },
		}
	}
	if s.http.listeners = inherited; inherited == nil {
		opened, err := listen.TCP(listen.Options{Addresses: addresses, Port: s.config.Value("http-port"), Open: s.given.Listen})
		if err != nil {
			return fmt.Errorf("http-port: %w", err)
		}
		s.http.listeners = opened
	}
	s.http.port = web.New(conf)
	return nil
}

func (s *Server) httpConfig() web.Config {
	c := s.config
	w := web.Config{
		Open:           s.openClient,
		Door:           login.New(s.engine.Users, adminLogins{s}),
		Certified:      s.engine.Certified,
		User:           s.httpUser,
		Limits:         s.limitsOf,
		Style:          headers.Style(slices.Index(headers.Styles, c.Value("http-headers"))),
		Gateway:        web.Gateway(slices.Index(web.Gateways, c.Value("http-gateway"))),
		Trusted:        c.HTTPTrusted(),
		Log:            s.log,
		MaxConnections: int(c.Number("maxclients")),
	}
	if c.Value("rls-config") != "" {
		w.Service, w.NotReady = s.descriptors(), s.healthNotReady
	}
	return w
}

// httpUser returns the user of requests without credentials. ok is false if they need some: the user is default, and
// needs a password.
func (s *Server) httpUser() (name string, ok bool) {
	name = s.config.Value("http-user")
	return name, name != acl.DefaultUser || !s.engine.Users.NeedsLogin()
}

// errNoHTTPUser is the refusal of a client whose user cannot be logged in, such as that of http-user.
const errNoHTTPUser use.Refusal = "NOAUTH the user of the request does not exist or is off"

// openClient opens the client of the RESP server for a user of the port.
func (s *Server) openClient(p web.Peer) (web.Caller, error) {
	c, err := s.direct.Open(direct.Origin{Remote: p.Remote, Local: p.Local, User: p.User, Library: "http", Gone: p.Gone})
	var refusal direct.Refusal
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &refusal):
		return nil, use.Refusal(refusal)
	case errors.Is(err, direct.ErrUser):
		return nil, errNoHTTPUser
	}
	return nil, err //nolint:wrapcheck // the port says that the server cannot decide
}

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
		return dst, false, true // a key that is no address has no limits
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
		_ = s.http.port.Shutdown(ctx) // of listeners and connections, which are given up
	}
}

// HTTPAddr returns the address of the first listener of http-port, or nil if there is none.
func (s *Server) HTTPAddr() net.Addr {
	if len(s.http.listeners) == 0 {
		return nil
	}
	return s.http.listeners[0].Addr()
}

// Traffic returns the counters of the transport, of all connections together since the start, with those of clients of other
// ports than those of the Redis protocol. It returns zeros before there is a transport.
func (s *Server) Traffic() (t transport.Stats) {
	if s.transport != nil {
		t = s.transport.Stats()
	}
	if s.direct != nil {
		t.Add(s.direct.Stats())
	}
	return t
}
