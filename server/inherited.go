package server

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/listen"
	"github.com/cellserver/cellserver/transport"
)

// Inherited returns the listening sockets that a service manager has passed to this process, by the
// option whose listeners they replace; see [Options.Inherited]. The name of a socket is that
// option. A socket with another name replaces the listeners of port, or of unixsocket if it is a
// Unix socket. The result is nil if there are no sockets, as in a second call. The error says that
// a socket cannot be used.
func Inherited() (map[string][]net.Listener, error) {
	sockets, err := listen.Inherited()
	if err != nil || sockets == nil {
		return nil, err
	}
	inherited := map[string][]net.Listener{}
	for _, s := range sockets {
		option := s.Name
		if !slices.Contains(inheritedOptions, option) {
			option = optionOf(s.Listener)
		}
		inherited[option] = append(inherited[option], s.Listener)
	}
	return inherited, nil
}

// inheritedOptions are the options whose listeners inherited sockets can replace.
var inheritedOptions = []string{"port", "tls-port", "unixsocket", "admin-port", "http-port", "rls-port"}

// checkInherited returns an error if a socket was passed for an unknown option, or for a port that
// is 0. tls-port, admin-port, http-port and rls-port are 0 unless they are set. Even with a socket they must be set,
// because their protection is configured together with them.
func (s *Server) checkInherited() error {
	for option, sockets := range s.given.Inherited {
		switch {
		case !slices.Contains(inheritedOptions, option):
			return fmt.Errorf("a socket was handed over for %q, which is none of %s", option, strings.Join(inheritedOptions, ", "))
		case len(sockets) > 0 && option != "unixsocket" && s.config.Value(option) == "0":
			return s.config.At(option, fmt.Errorf("a socket was handed over for %s, which is 0", option))
		}
	}
	return nil
}

// useInherited adds the sockets that were passed for option to the listeners; those for tls-port
// speak TLS. It reports whether there are any.
func (s *Server) useInherited(option string) bool {
	sockets := s.given.Inherited[option]
	for _, l := range sockets {
		if option == "tls-port" {
			l = transport.NewTLSListener(l, s.tls.clients.Load)
		}
		s.listening.open = append(s.listening.open, &listener{Listener: l, option: option})
	}
	return len(sockets) > 0
}

// inheritedAdmin returns the sockets that were passed for the admin port. It returns an error if
// other machines can reach one of them, no user has a password, and admin-tls is no. The addresses
// of admin-bind have the same condition.
func (s *Server) inheritedAdmin() ([]net.Listener, error) {
	sockets := s.given.Inherited["admin-port"]
	for _, l := range sockets {
		if reachableAddr(l.Addr()) && !hasPasswords(s.engine.Users) && !s.config.Yes("admin-tls") {
			return nil, fmt.Errorf("the socket %s of admin-port lets other machines in without a password: set requirepass, define users, or set admin-tls yes", l.Addr())
		}
	}
	return sockets, nil
}

// reachable returns an address for clients that other machines can reach: the address of an
// inherited socket, or one of the option bind. It returns "" if there is none.
func (s *Server) reachable() string {
	for _, option := range append(slices.Clone(portOptions), "unixsocket") { // a socket that was passed for unixsocket may be a TCP socket
		for _, l := range s.given.Inherited[option] {
			if reachableAddr(l.Addr()) {
				return l.Addr().String()
			}
		}
	}
	return s.config.Reachable()
}

// reachableAddr reports whether other machines may reach the address a. It returns false for an
// address that is not a TCP address.
func reachableAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
