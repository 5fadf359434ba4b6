package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/transport"
)

// firstInherited is the first file descriptor that a service manager passes.
const firstInherited = 3

// inheritedVariables are the environment variables that describe these descriptors.
var inheritedVariables = []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}

// Inherited returns the sockets that a service manager has opened for this process, by the option
// that each replaces ([Options.Inherited]); nil if there are none. It implements sd_listen_fds of
// systemd. It removes the variables from the environment, so a second call returns none.
func Inherited() (map[string][]net.Listener, error) {
	pid, n, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil // they are for another process, from which this one inherited its environment
	}
	for _, v := range inheritedVariables {
		if err := os.Unsetenv(v); err != nil {
			return nil, fmt.Errorf("inherited sockets: %w", err)
		}
	}
	count, err := strconv.Atoi(n)
	if err != nil || count < 0 {
		return nil, fmt.Errorf("inherited sockets: LISTEN_FDS is %q, no number", n)
	}
	var inherited map[string][]net.Listener
	for i := range count {
		l, err := inheritedSocket(firstInherited + i)
		if err != nil {
			return nil, err
		}
		if inherited == nil {
			inherited = map[string][]net.Listener{}
		}
		option := optionOf(l)
		if i < len(names) && slices.Contains(inheritedOptions, names[i]) {
			option = names[i]
		}
		inherited[option] = append(inherited[option], l)
	}
	return inherited, nil
}

// inheritedSocket returns a listener for a descriptor, which it closes: the listener has a
// duplicate. A descriptor that is not a listening socket may belong to the runtime, and stays open.
func inheritedSocket(descriptor int) (net.Listener, error) {
	if err := checkListens(descriptor); err != nil {
		return nil, fmt.Errorf("inherited sockets: descriptor %d: %w", descriptor, err)
	}
	f := os.NewFile(uintptr(descriptor), "socket "+strconv.Itoa(descriptor))
	if f == nil {
		return nil, fmt.Errorf("inherited sockets: there is no descriptor %d", descriptor)
	}
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("inherited sockets: descriptor %d: %w", descriptor, err)
	}
	return l, nil
}

// inheritedOptions are the options that inherited sockets can replace.
var inheritedOptions = []string{"port", "tls-port", "unixsocket", "admin-port"}

// checkInherited refuses sockets for which the configuration has no use. tls-port and admin-port
// are off unless they are set, and their protection is configured together with them.
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

// useInherited serves the sockets that were passed for an option, and reports whether there are
// any.
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

// inheritedAdmin returns the inherited sockets of the admin port. A socket that other machines can
// reach has the same requirements as an address of admin-bind.
func (s *Server) inheritedAdmin() ([]net.Listener, error) {
	sockets := s.given.Inherited["admin-port"]
	for _, l := range sockets {
		if reachableAddr(l.Addr()) && !hasPasswords(s.engine.Users) && !s.config.Yes("admin-tls") {
			return nil, fmt.Errorf("the socket %s of admin-port lets other machines in without a password: set requirepass, define users, or set admin-tls yes", l.Addr())
		}
	}
	return sockets, nil
}

// reachable returns an address of the server that other machines can reach, or "".
func (s *Server) reachable() string {
	for _, option := range append(slices.Clone(portOptions), "unixsocket") { // a socket passed for unixsocket need not be one
		for _, l := range s.given.Inherited[option] {
			if reachableAddr(l.Addr()) {
				return l.Addr().String()
			}
		}
	}
	return s.config.Reachable()
}

// reachableAddr reports whether other machines may reach an address.
func reachableAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
