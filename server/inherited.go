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

// firstInherited is the first file descriptor that a service manager passes, SD_LISTEN_FDS_START of
// systemd.
const firstInherited = 3

// inheritedVariables are the environment variables that describe the passed descriptors.
var inheritedVariables = []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}

// Inherited returns the listening sockets that a service manager has passed to this process, by the
// option whose listeners they replace; see [Options.Inherited]. The result is nil if there are
// none. Inherited implements sd_listen_fds of systemd. It removes the variables from the
// environment, so a second call returns none.
func Inherited() (map[string][]net.Listener, error) {
	pid, n, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil // the descriptors are for another process, whose environment this process has inherited
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

// inheritedSocket returns a listener for a file descriptor. It closes the descriptor, of which the
// listener has a duplicate. If the descriptor is not a listening socket, it returns an error and
// leaves the descriptor open, since it may belong to Go's runtime.
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

// inheritedOptions are the options whose listeners inherited sockets can replace.
var inheritedOptions = []string{"port", "tls-port", "unixsocket", "admin-port"}

// checkInherited returns an error for a socket that the configuration does not use. tls-port and
// admin-port are off unless they are set, and must be set with a socket, too, because their
// protection is configured together with them.
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

// useInherited adds the sockets that were passed for option to the listeners. It reports whether
// there are any.
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
// other machines can reach one of them without a password, as for an address of admin-bind.
func (s *Server) inheritedAdmin() ([]net.Listener, error) {
	sockets := s.given.Inherited["admin-port"]
	for _, l := range sockets {
		if reachableAddr(l.Addr()) && !hasPasswords(s.engine.Users) && !s.config.Yes("admin-tls") {
			return nil, fmt.Errorf("the socket %s of admin-port lets other machines in without a password: set requirepass, define users, or set admin-tls yes", l.Addr())
		}
	}
	return sockets, nil
}

// reachable returns an address of this server that other machines can reach, or "" if there is
// none.
func (s *Server) reachable() string {
	for _, option := range append(slices.Clone(portOptions), "unixsocket") { // a socket passed for unixsocket may be one of TCP
		for _, l := range s.given.Inherited[option] {
			if reachableAddr(l.Addr()) {
				return l.Addr().String()
			}
		}
	}
	return s.config.Reachable()
}

// reachableAddr reports whether other machines may reach the address a.
func reachableAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
