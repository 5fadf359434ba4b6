package server

import (
	"crypto/tls"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/tlsconfig"
)

// certificates has the TLS configurations of new connections. They are nil without TLS.
type certificates struct {
	clients atomic.Pointer[tls.Config] // the configuration of tls-port
	admin   atomic.Pointer[tls.Config] // the configuration of admin-port, which requests no client certificate
	http    atomic.Pointer[tls.Config] // the configuration of http-port and rls-port
}

// startTLS applies the certificates of the configuration. They are read again by CONFIG SET of any
// TLS option and by every reload.
func (s *Server) startTLS() error {
	s.config.OnSet(func(name string) bool { return strings.HasPrefix(name, "tls-") }, s.prepareTLS)
	if err := s.start(s.prepareTLS); err != nil {
		return err
	}
	if s.tls.admin.Load() != nil {
		s.admin.certificates = s.tls.admin.Load
	}
	return nil
}

// prepareTLS reads the TLS files of the configuration next, and returns a function that applies
// them to new connections. Existing connections do not change. apply is nil if no port uses TLS.
func (s *Server) prepareTLS(next *config.Config) (apply func(), err error) {
	conf, err := loadTLS(next)
	if conf == nil || err != nil {
		return nil, err
	}
	fixed := next.Value("tls-ciphersuites")
	clients, news := next.Value("tls-port") != "0", s.tls.admin.Load() == nil || fixed != s.config.Value("tls-ciphersuites")
	return func() {
		if fixed != "" && news {
			s.log.Warn("tls-ciphersuites has no effect: the cipher suites of TLS 1.3 are fixed")
		}
		s.useTLS(conf, clients)
	}, nil
}

// loadTLS reads the TLS files that the configuration names. It returns nil if no port uses TLS. If
// only the admin port does, the result requests no certificates of clients.
func loadTLS(c *config.Config) (*tls.Config, error) {
	options := c.TLSOptions()
	if c.Value("tls-port") == "0" && !encrypted(c, "http-port", "http-tls") && !encrypted(c, "rls-port", "rls-tls") {
		if !encrypted(c, "admin-port", "admin-tls") {
			return nil, nil
		}
		options.AuthClients = tlsconfig.Ignore // no port for clients uses TLS
	}
	return tlsconfig.Load(options)
}

// encrypted reports whether c has a port with the option port, and the option tls is yes.
func encrypted(c *config.Config, port, tls string) bool { return c.Value(port) != "0" && c.Yes(tls) }

// soonExpired is the remaining validity of a certificate below which the server logs a warning.
const soonExpired = 14 * 24 * time.Hour

// useTLS makes new connections to the admin port, http-port and rls-port use conf and, if clients is true, new connections
// to tls-port, too. If clients is false, tls-port is closed or is about to be closed, and keeps its
// configuration for clients that still connect. useTLS logs the certificate if it has changed, and
// a warning if it expires soon.
func (s *Server) useTLS(conf *tls.Config, clients bool) {
	forAdmin := conf.Clone()
	forAdmin.ClientAuth, forAdmin.ClientCAs = tls.NoClientCert, nil // no client certificate, because browsers log in with a password
	forAdmin.SessionTicketsDisabled = true
	old := s.tls.admin.Swap(forAdmin)
	forHTTP := conf.Clone()
	forHTTP.SessionTicketsDisabled, forHTTP.NextProtos = true, []string{"h2", "http/1.1"}
	s.tls.http.Store(forHTTP)
	if clients {
		s.tls.clients.Store(conf)
	}
	cert := conf.Certificates[0].Leaf
	text := "certificate of " + cert.Subject.String() + " until " + cert.NotAfter.UTC().Format(time.DateOnly)
	if old == nil || !cert.Equal(old.Certificates[0].Leaf) {
		s.log.Info("TLS uses a certificate", "subject", cert.Subject.String(), "expires", cert.NotAfter.UTC().Format(time.RFC3339))
		s.engine.Changed("certificate", text, "")
	}
	if left := cert.NotAfter.Sub(time.UnixMilli(s.engine.CivilMillis())); left < soonExpired {
		s.log.Warn("the certificate expires soon, or has expired", "subject", cert.Subject.String(), "expires", cert.NotAfter.UTC().Format(time.RFC3339))
	}
}
