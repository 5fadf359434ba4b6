package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// listen opens the listeners of the configuration, or uses the given ones.
func (s *Server) listen(given []net.Listener) error {
	if given != nil {
		s.listeners = given
		s.notePort()
		return nil
	}
	addresses, port := s.config.addresses(), s.config.value("port")
	if len(addresses) > 0 {
		if err := s.listenTCP(addresses, port); err != nil {
			return err
		}
	}
	if path := s.config.path("unixsocket"); path != "" {
		if err := s.listenUnix(path); err != nil {
			return err
		}
	}
	if len(s.listeners) == 0 {
		return errors.New("nothing to listen on: bind is empty or port is 0, and there is no unixsocket")
	}
	s.notePort()
	return nil
}

// bindNetwork returns the network and the host of an address in Redis' words: "*" is
// every IPv4 address and "::*" every IPv6 address. IPv6 sockets accept no IPv4, so that
// both may be given.
func bindNetwork(address string) (network, host string) {
	switch {
	case address == "*":
		return "tcp4", ""
	case address == "::*":
		return "tcp6", "::"
	case strings.Contains(address, ":"):
		return "tcp6", address
	case net.ParseIP(address) != nil:
		return "tcp4", address // Go would take 0.0.0.0 for every address of either kind
	}
	return "tcp", address
}

// listenTCP opens the addresses. An address that begins with "-" may be missing on this
// machine.
func (s *Server) listenTCP(addresses []string, port string) error {
	open := 0
	for _, a := range addresses {
		address, optional := strings.CutPrefix(a, "-")
		network, host := bindNetwork(address)
		if open > 0 && port == "0" {
			break
		}
		l, err := listenConfig().Listen(context.Background(), network, net.JoinHostPort(host, port))
		if err != nil {
			if optional && missingAddress(err) {
				continue
			}
			return fmt.Errorf("listening on %s: %w", a, err)
		}
		if err := setBacklog(l.(*net.TCPListener), int(number(s.config.value("tcp-backlog")))); err != nil {
			return errors.Join(fmt.Errorf("setting the backlog of %s: %w", a, err), l.Close())
		}
		open++
		s.listeners = append(s.listeners, l)
	}
	if open == 0 {
		return fmt.Errorf("listening on %s: none of the addresses exists here", strings.Join(addresses, " "))
	}
	return nil
}

// listenConfig is plain TCP: the multipath form that Go prefers does not pass the
// options of a listener on to what it accepts.
func listenConfig() *net.ListenConfig {
	c := &net.ListenConfig{}
	c.SetMultipathTCP(false)
	return c
}

// missingAddress reports whether the machine lacks the address or its family.
func missingAddress(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listenUnix opens the socket. It is created without permissions and gets unixsocketperm
// afterwards, so that nobody without permission can ever connect (the class of
// CVE-2023-45145). A socket without an answering server is left over from a crash, and is
// replaced.
func (s *Server) listenUnix(path string) error {
	if conn, err := net.Dial("unix", path); err == nil {
		return errors.Join(fmt.Errorf("listening on %s: another server is there", path), conn.Close())
	} else if errors.Is(err, syscall.ECONNREFUSED) && isSocket(path) {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the socket of a dead server: %w", err)
		}
	}
	var l net.Listener
	err := withUmask(func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
		return err
	})
	if err != nil {
		return fmt.Errorf("listening on %s: %w", path, err)
	}
	s.listeners = append(s.listeners, l)
	perm, err := strconv.ParseUint(s.config.value("unixsocketperm"), 8, 32)
	if err != nil {
		return fmt.Errorf("unixsocketperm: %w", err)
	}
	if err := os.Chmod(path, os.FileMode(perm)); err != nil {
		return fmt.Errorf("setting the permissions of %s: %w", path, err)
	}
	return nil
}

// isSocket distinguishes a socket from a file that was named by mistake: both refuse
// connections, but only a socket may be removed.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// notePort remembers the port that INFO shows.
func (s *Server) notePort() {
	for _, l := range s.listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			s.port.Store(int64(a.Port))
			return
		}
	}
}

func (s *Server) tcpPort() int { return int(s.port.Load()) }

// Addr returns the first address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listeners[0].Addr() }

func (s *Server) addresses() []string {
	all := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		all[i] = l.Addr().String()
	}
	return all
}
