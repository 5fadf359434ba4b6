package server

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/envoy"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/wire"
	"github.com/cellserver/cellserver/transport/direct"
)

// servicePort is the port for Envoy's rate limit service. If the server has none, port is nil and there are no listeners.
type servicePort struct {
	port      *envoy.Server
	listeners []net.Listener
	counts    descriptors.Counts
	tally     *descriptors.Tally // counts the hits of rules; nil unless rls-metrics is set
}

// tallyOf returns a Tally for the hits of rules with the configuration c; nil if the option rls-metrics is none.
func tallyOf(c *config.Config) *descriptors.Tally {
	if c.Value("rls-metrics") == "none" {
		return nil
	}
	return descriptors.NewTally()
}

// openService creates the port for Envoy's rate limit service, if one is configured. It returns the errors of
// openFront.
func (s *Server) openService() error {
	listeners, over, err := s.openFront("rls", s.config.ServiceAddresses())
	if err != nil || listeners == nil {
		return err
	}
	s.service.listeners = listeners
	s.service.port = envoy.New(envoy.Config{
		Service: s.descriptors(), Open: s.openCaller, Ready: s.callsRefused, TLS: over,
		MaxAge: s.config.Seconds("rls-max-connection-age"),
	})
	return nil
}

// descriptors returns the service that answers requests of rls-port and of POST /json.
func (s *Server) descriptors() *descriptors.Service {
	d := &descriptors.Service{
		Options: func() (rls.Options, wire.Headers) {
			o := &s.engine.Limits().Service
			return rls.Options{
				Together: o.Together, Shadow: o.Shadow, Quota: o.Quota, Metadata: o.Metadata, Headers: o.Headers[0] != "",
				Near: s.engine.Limits().NearLimit,
			}, wire.Headers{Limit: o.Headers[0], Remaining: o.Headers[1], Reset: o.Headers[2]}
		},
		Now:           s.engine.Options.Now,
		Limits:        s.policies.registry.Limits,
		LimitsHeaders: func() bool { return s.engine.Limits().Service.LimitsHeaders },
		Counts:        &s.service.counts,
		Tally:         s.service.tally,
	}
	if s.config.Path("rls-config") != "" {
		d.Rules = s.rulesInForce
	}
	return d
}

// rulesInForce returns the rules of rls-config in force, or nil if there are none.
func (s *Server) rulesInForce() *rls.Config {
	_, rules := s.policies.registry.InForce()
	return rules
}

// errNoServiceUser is the refusal of a client without a certificate while the user default needs a password.
const errNoServiceUser resp.Error = "NOAUTH the user default needs a password: set rls-user, or use a client certificate"

// openCaller opens the client of a connection to the port.
func (s *Server) openCaller(c envoy.Connection) (envoy.Caller, error) {
	opened, err := s.openDirect(direct.Origin{Remote: c.Remote, Local: c.Local, Library: "rls", Gone: c.Hangup, Kept: c.Kept})
	if err != nil {
		return nil, err
	}
	return &serviceCaller{opened, s}, nil
}

// serviceCaller is the client of a connection to the port of the rate limit service.
type serviceCaller struct {
	*direct.Conn
	s *Server
}

// Login implements [envoy.Caller].
func (c *serviceCaller) Login(is *tls.ConnectionState) error {
	user, ok := c.s.frontUser("rls-user")
	if is != nil {
		if name, certified := c.s.engine.Certified(is); certified {
			user, ok = name, true
		}
	}
	if !ok {
		return errNoServiceUser
	}
	return c.Conn.Login(user)
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
