package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/admin"
	"github.com/cellserver/cellserver/admin/page"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/listen"
	"github.com/cellserver/cellserver/metrics"
)

// adminPort is the HTTP port for operators. If the server has no admin port, port is nil and there
// are no listeners.
type adminPort struct {
	port      *admin.Server
	listeners []net.Listener
	// certificates returns the present TLS configuration. It is nil if the server has no
	// certificates.
	certificates func() *tls.Config
}

// openAdmin creates the admin port, if one is configured. It uses the listeners given if that is
// not nil, else inherited sockets, else it opens the addresses in the configuration. It returns an
// error if that fails, if other machines could reach the port without a password and without TLS,
// or if admin-tls is yes and there is no certificate.
func (s *Server) openAdmin(given []net.Listener) error {
	addresses := s.config.AdminAddresses()
	if len(addresses) == 0 && given == nil && len(s.given.Inherited["admin-port"]) == 0 {
		return nil
	}
	if err := s.config.RefuseReachableAdmin(hasPasswords(s.engine.Users)); err != nil {
		return err
	}
	conf := s.adminConfig()
	if s.config.Yes("admin-tls") {
		if s.admin.certificates == nil {
			return errors.New("admin-tls needs a certificate: set tls-cert-file and tls-key-file")
		}
		conf.TLS = &tls.Config{
			MinVersion:             tls.VersionTLS12,
			SessionTicketsDisabled: true, // a ticket would become invalid with each reload, since its key belongs to one configuration
			GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.admin.certificates(), nil },
		}
	}
	if given == nil {
		inherited, err := s.inheritedAdmin()
		if err != nil {
			return err
		}
		given = inherited
	}
	s.admin.listeners = given
	if given == nil {
		opened, err := listen.TCP(listen.Options{Addresses: addresses, Port: s.config.Value("admin-port"), Open: s.given.Listen})
		if err != nil {
			return fmt.Errorf("admin-port: %w", err)
		}
		s.admin.listeners = opened
	}
	s.admin.port = admin.New(conf)
	return nil
}

func (s *Server) adminConfig() admin.Config {
	c := s.config
	return admin.Config{
		Users:            s.engine.Users,
		May:              s.may,
		Protected:        func() bool { return s.engine.Limits().ProtectedMode },
		Logins:           adminLogins{s},
		Healthy:          s.loopsAnswer,
		Ready:            s.notReady,
		Metrics:          metrics.Handler(s.engine.Figures, s.log),
		API:              s.reports.reporter.Handler(func(r *http.Request) *acl.User { return admin.User(r.Context()) }),
		Page:             page.Handler(),
		AnonymousMetrics: c.Yes("admin-anonymous-metrics"),
		Pprof:            c.Yes("admin-pprof"),
		Hosts:            s.adminHosts(),
		Log:              s.log,
	}
}

// adminHosts returns the host names that requests to the admin port may have: the names in the
// option admin-hosts, and the name of the machine.
func (s *Server) adminHosts() []string {
	hosts := strings.Fields(s.config.Value("admin-hosts"))
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	return hosts
}

func hasPasswords(users *acl.Users) bool {
	return slices.ContainsFunc(users.Names(), func(name string) bool {
		u := users.Find(name)
		return u != nil && len(u.Rules().Passwords()) > 0
	})
}

// may reports whether the user u may call the command called name. If the command does not exist,
// only a user without restrictions may call it.
func (s *Server) may(u *acl.User, name string) bool {
	r := u.Rules()
	cmd := s.engine.Commands.Find([]byte(name))
	if r.Unrestricted || cmd == nil {
		return r.Unrestricted
	}
	return cmd.Refused(r, [][]byte{[]byte(name)}, false).Reason == acl.DeniedNothing
}

// adminLogins implements [login.Limiter]. It counts login attempts together with the login attempts
// of the Redis protocol.
type adminLogins struct{ s *Server }

// Attempt implements [login.Limiter]. It adds refused and failed attempts to ACL LOG.
func (l adminLogins) Attempt(user, address string) (wait time.Duration, refused bool, judged func(u *acl.User, ok bool)) {
	e := l.s.engine
	var a command.Attempt
	if e.Logins != nil {
		if a = e.Logins.Attempt(address, e.MachineNow()); a.Refused {
			l.note(user, address)
		}
	}
	return a.Wait, a.Refused, func(u *acl.User, ok bool) {
		if e.Logins != nil {
			e.Logins.Judged(a, e.MachineNow(), ok, ok && !u.Rules().NoPass)
		}
		if !ok {
			l.note(user, address)
		}
	}
}

// note adds a failed login of user from address to the entries of ACL LOG.
func (l adminLogins) note(user, address string) {
	e := l.s.engine
	e.Refusals.Add(acl.LogEntry{Reason: acl.DeniedAuth, Object: "HTTP", User: user, Client: "addr=" + address},
		int64(e.Options.Civil())/int64(time.Millisecond))
}

// serveAdmin starts to serve the listeners of the admin port. For each listener it calls start with
// a function that serves the listener until endAdmin, and then calls fail with the error of the
// listener.
func (s *Server) serveAdmin(start func(f func()), fail func(error)) {
	for _, l := range s.admin.listeners {
		start(func() { fail(s.admin.port.Serve(l)) })
	}
	if s.admin.port != nil {
		s.log.Info("the admin port accepts connections", "addresses", addressesOf(s.admin.listeners))
	}
}

// adminLinger is the maximum time that requests to the admin port may take when the server stops.
const adminLinger = time.Second

// endAdmin closes the admin port and waits for its requests, for adminLinger at most. The admin
// port is the last port of the server that answers.
func (s *Server) endAdmin() error {
	if s.admin.port == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminLinger)
	defer cancel()
	if err := s.admin.port.Shutdown(ctx); err != nil {
		return fmt.Errorf("closing the admin port: %w", err)
	}
	return nil
}

// AdminAddr returns the address of the first listener of the admin port, or nil if there is none.
func (s *Server) AdminAddr() net.Addr {
	if len(s.admin.listeners) == 0 {
		return nil
	}
	return s.admin.listeners[0].Addr()
}

func addressesOf(listeners []net.Listener) []string {
	all := make([]string, len(listeners))
	for i, l := range listeners {
		all[i] = l.Addr().String()
	}
	return all
}
