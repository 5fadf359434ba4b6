package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/envoy"
	"github.com/cellserver/cellserver/listen"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/wire"
	"github.com/cellserver/cellserver/transport/direct"
)

// servicePort is the port for Envoy's rate limit service. If the server has none, port is nil and there are no listeners.
type servicePort struct {
	port      *envoy.Server
	listeners []net.Listener
	counts    descriptors.Counts
}

// openService creates the port for Envoy's rate limit service, if one is configured. It uses inherited sockets, or else
// opens the addresses of the configuration. It returns an error if that fails, or if rls-tls is yes and there is no
// certificate.
func (s *Server) openService() error {
	addresses, inherited := s.config.ServiceAddresses(), s.given.Inherited["rls-port"]
	if len(addresses) == 0 && len(inherited) == 0 {
		return nil
	}
	conf := envoy.Config{
		Service: s.descriptors(), Open: s.openCaller, Ready: s.serviceNotReady, MaxAge: s.config.Seconds("rls-max-connection-age"),
		MaxConnections: int(s.config.Number("maxclients")),
	}
	if s.config.Yes("rls-tls") {
		if s.tls.http.Load() == nil {
			return errors.New("rls-tls needs a certificate: set tls-cert-file and tls-key-file")
		}
		conf.TLS = &tls.Config{
			MinVersion:             tls.VersionTLS12,
			SessionTicketsDisabled: true, // as for the admin port
			GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.http.Load(), nil },
		}
	}
	if s.service.listeners = inherited; inherited == nil {
		opened, err := listen.TCP(listen.Options{Addresses: addresses, Port: s.config.Value("rls-port"), Open: s.given.Listen})
		if err != nil {
			return fmt.Errorf("rls-port: %w", err)
		}
		s.service.listeners = opened
	}
	s.service.port = envoy.New(conf)
	return nil
}

// descriptors returns the service that answers requests of rls-port.
func (s *Server) descriptors() *descriptors.Service {
	return &descriptors.Service{
		Rules: s.rulesInForce,
		Options: func() (rls.Options, wire.Headers) {
			o := &s.engine.Limits().Service
			return rls.Options{
				Together: o.Together, Shadow: o.Shadow, Quota: o.Quota, Metadata: o.Metadata, Headers: o.Headers[0] != "",
			}, wire.Headers{Limit: o.Headers[0], Remaining: o.Headers[1], Reset: o.Headers[2]}
		},
		Now:    s.engine.Options.Now,
		Counts: &s.service.counts,
	}
}

// rulesInForce returns the rules of rls-config in force, or nil if there are none.
func (s *Server) rulesInForce() *rls.Config {
	if s.policies.registry == nil {
		return nil
	}
	_, rules := s.policies.registry.InForce()
	return rules
}

// errNoServiceUser is the refusal of a client without a certificate while the user default needs a password.
const errNoServiceUser direct.Refusal = "NOAUTH the user default needs a password: set rls-user, or use a client certificate"

// errNoSuchUser is the refusal of a client whose user cannot be logged in, such as that of rls-user.
const errNoSuchUser direct.Refusal = "NOAUTH the user of the call does not exist or is off"

// openCaller opens the client of a connection to the port.
func (s *Server) openCaller(c envoy.Connection) (envoy.Caller, error) {
	user := s.config.Value("rls-user")
	certified := false
	if c.TLS != nil {
		if name, ok := s.engine.Certified(c.TLS); ok {
			user, certified = name, true
		}
	}
	if !certified && user == acl.DefaultUser && s.engine.Users.NeedsLogin() {
		return nil, errNoServiceUser
	}
	opened, err := s.direct.Open(direct.Origin{Remote: c.Remote, Local: c.Local, User: user, Library: "rls", Gone: c.Hangup})
	switch {
	case errors.Is(err, direct.ErrUser):
		return nil, errNoSuchUser
	case err != nil:
		return nil, err //nolint:wrapcheck // CodeOf of package descriptors knows these errors
	}
	return opened, nil
}

// loopsMayTake is the time in which the event loops have to answer a check of the health service.
const loopsMayTake = time.Second

// serviceNotReady returns why the service should get no calls, or "" if it should.
func (s *Server) serviceNotReady() string {
	ctx, cancel := context.WithTimeout(context.Background(), loopsMayTake)
	defer cancel()
	switch {
	case s.engine.ChangesRefused() != "":
		return "refuses-changes"
	case s.rulesInForce() == nil:
		return noRules
	}
	return s.notReady(ctx)
}

// noRules is the reason of [Server.serviceNotReady] for a server without rules.
const noRules = "no-rules"

// healthNotReady does what serviceNotReady does, for GET /healthcheck. A server that may start without rules is healthy
// without them, as ratelimit is: otherwise an orchestrator would restart it while it waits for them.
func (s *Server) healthNotReady() string {
	why := s.serviceNotReady()
	if why == noRules && !s.config.Yes("rls-config-required") {
		return ""
	}
	return why
}

// serveService starts to serve the listeners of the port, as serveHTTP does.
func (s *Server) serveService(start func(f func()), fail func(error)) {
	for _, l := range s.service.listeners {
		start(func() {
			if err := s.service.port.Serve(l); err != nil {
				fail(err)
			}
		})
	}
	if s.service.port != nil {
		s.log.Info("rls-port accepts connections", "addresses", addressesOf(s.service.listeners))
	}
}

// endService closes the port and waits for its calls. When ctx ends it waits no longer.
func (s *Server) endService(ctx context.Context) {
	if s.service.port != nil {
		s.service.port.Shutdown(ctx)
	}
}

// ServiceAddr returns the address of the first listener of rls-port, or nil if there is none.
func (s *Server) ServiceAddr() net.Addr {
	if len(s.service.listeners) == 0 {
		return nil
	}
	return s.service.listeners[0].Addr()
}
