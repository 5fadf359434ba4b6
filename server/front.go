package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/listen"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport/direct"
)

// openFront opens the port for decisions in another protocol whose options begin with name: http or rls. It uses
// inherited sockets, or else opens addresses, which come from the configuration. There are no listeners if no port is
// configured. over is nil without TLS. The error says that an address cannot be opened, or that the option for TLS is
// yes and there is no certificate.
func (s *Server) openFront(name string, addresses []string) (listeners []net.Listener, over *tls.Config, err error) {
	port := name + "-port"
	listeners = s.given.Inherited[port]
	if len(addresses) == 0 && len(listeners) == 0 {
		return nil, nil, nil
	}
	if s.config.Yes(name + "-tls") {
		if s.tls.http.Load() == nil {
			return nil, nil, fmt.Errorf("%s-tls needs a certificate: set tls-cert-file and tls-key-file", name)
		}
		over = &tls.Config{
			MinVersion:             tls.VersionTLS12,
			SessionTicketsDisabled: true, // session tickets are off for the same reason as on the admin port
			GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.http.Load(), nil },
		}
	}
	if listeners == nil {
		if listeners, err = listen.TCP(listen.Options{Addresses: addresses, Port: s.config.Value(port), Open: s.given.Listen}); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", port, err)
		}
	}
	return listeners, over, nil
}

// frontUser returns the user that runs requests without credentials: the value of the option http-user or rls-user. ok is
// false if such requests are refused, because the user is default and clients have to log in.
func (s *Server) frontUser(option string) (name string, ok bool) {
	name = s.config.Value(option)
	return name, name != acl.DefaultUser || !s.engine.Users.NeedsLogin()
}

// openDirect opens the client of this server that a connection to a front is, so CLIENT LIST shows it, and maxclients and
// max-clients-per-ip hold for it, before its first call. A refusal is a [resp.Error]; any other error says that the server stops.
func (s *Server) openDirect(o direct.Origin) (*direct.Conn, error) {
	c, err := s.direct.Open(o)
	var refusal direct.Refusal
	if errors.As(err, &refusal) {
		return nil, resp.Error(refusal)
	}
	return c, err //nolint:wrapcheck // the fronts say that the server cannot decide
}
