package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/transport"
)

// listener is one of the server's listeners for clients.
type listener struct {
	net.Listener
	option string // the option for which the listener was opened
	// late says that the listener was opened while the server was running. If it fails, the server
	// continues. retired says that the listener has been closed on purpose.
	late    bool
	retired atomic.Bool
}

// listen opens the listeners of the configuration, except for options with inherited sockets, which
// it uses instead. If given is not nil, it uses only the listeners in it. It sets the port that
// INFO shows. It returns an error if there is no listener.
func (s *Server) listen(given []net.Listener) error {
	open := &s.listening.open
	for _, l := range given {
		*open = append(*open, &listener{Listener: l, option: optionOf(l)})
	}
	if given != nil {
		s.notePort()
		return nil
	}
	if err := s.checkInherited(); err != nil {
		return err
	}
	for _, option := range portOptions {
		if s.useInherited(option) {
			continue
		}
		opened, err := s.listenTCP(s.config, option)
		*open = append(*open, opened...)
		if err != nil {
			return err
		}
	}
	if path := s.config.Path("unixsocket"); !s.useInherited("unixsocket") && path != "" {
		l, err := s.listenUnix(path)
		if l != nil {
			*open = append(*open, &listener{Listener: l, option: "unixsocket"})
		}
		if err != nil {
			return err
		}
	}
	if len(*open) == 0 {
		return errNoListener
	}
	s.notePort()
	return nil
}

// portOptions are the options for client ports, in the order of listening.open.
var portOptions = []string{"port", "tls-port"}

var errNoListener = errors.New("nothing to listen on: bind is empty or port and tls-port are 0, and there is no unixsocket")

// optionOf returns the option that would have opened a listener of the type of l.
func optionOf(l net.Listener) string {
	switch l.(type) {
	case *transport.TLSListener:
		return "tls-port"
	case *net.UnixListener:
		return "unixsocket"
	}
	return "port"
}

// bindNetwork returns the network and the host to listen on for an address of the option bind. As
// in Redis, "*" stands for every IPv4 address and "::*" for every IPv6 address. IPv6 sockets accept
// no IPv4 connections, so that both may be given.
func bindNetwork(address string) (network, host string) {
	switch {
	case address == "*":
		return "tcp4", ""
	case address == "::*":
		return "tcp6", "::"
	case strings.Contains(address, ":"):
		return "tcp6", address
	case net.ParseIP(address) != nil:
		return "tcp4", address // with the network tcp, Go would take 0.0.0.0 for all addresses of both families
	}
	return "tcp", address
}

// listenTCP opens the port of option on all addresses of c, with TLS if option is tls-port. It
// opens none if the port is 0. An address that begins with "-" may be missing on this machine. On
// an error it also returns the listeners that it has opened before, which the caller must close.
func (s *Server) listenTCP(c *config.Config, option string) (opened []*listener, err error) {
	addresses, port := c.Addresses(), c.Value(option)
	if len(addresses) == 0 || port == "0" {
		return nil, nil
	}
	for _, a := range addresses {
		address, optional := strings.CutPrefix(a, "-")
		network, host := bindNetwork(address)
		l, err := s.openPort(network, net.JoinHostPort(host, port))
		if err != nil {
			if optional && missingAddress(err) {
				continue
			}
			return opened, fmt.Errorf("listening on %s: %w", a, err)
		}
		if tcp, ok := l.(*net.TCPListener); ok {
			if err := setBacklog(tcp, int(c.Number("tcp-backlog"))); err != nil {
				return opened, errors.Join(fmt.Errorf("setting the backlog of %s: %w", a, err), l.Close())
			}
		}
		if option == "tls-port" {
			l = transport.NewTLSListener(l, s.tls.clients.Load)
		}
		opened = append(opened, &listener{Listener: l, option: option})
	}
	if len(opened) == 0 {
		return nil, fmt.Errorf("listening on %s: none of the addresses exists here", strings.Join(addresses, " "))
	}
	return opened, nil
}

// openPort opens a TCP port, by Options.Listen if that is set. It uses plain TCP: with Multipath
// TCP, which Go prefers, accepted connections do not inherit the options of the listener.
func (s *Server) openPort(network, address string) (net.Listener, error) {
	if s.given.Listen != nil {
		return s.given.Listen(network, address)
	}
	c := &net.ListenConfig{}
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), network, address)
}

// missingAddress reports whether err means that this machine lacks the address or its address
// family.
func missingAddress(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listenUnix opens a Unix socket at path. The socket is created without permissions for others and
// gets those of unixsocketperm afterwards, so that a process without permission can never connect
// (the class of CVE-2023-45145). A socket that no server uses is left over from a crash, and
// listenUnix replaces it. With an error about the permissions it also returns the listener.
func (s *Server) listenUnix(path string) (l net.Listener, err error) {
	if conn, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: another server is there", path), conn.Close())
	} else if errors.Is(err, syscall.ECONNREFUSED) && isSocket(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the socket of a dead server: %w", err)
		}
	}
	err = withUmask(func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	perm, err := strconv.ParseUint(s.config.Value("unixsocketperm"), 8, 32)
	if err != nil {
		return l, fmt.Errorf("unixsocketperm: %w", err)
	}
	if err := os.Chmod(path, os.FileMode(perm)); err != nil {
		return l, fmt.Errorf("setting the permissions of %s: %w", path, err)
	}
	return l, nil
}

// isSocket reports whether the file at path is a socket. A file that was named by mistake refuses
// connections like a socket without a server, but must not be removed.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// listening has the listeners for clients.
type listening struct {
	mu    sync.Mutex        // guards the fields below
	open  []*listener       // in the order port, tls-port, unixsocket
	serve func(l *listener) // nil before Run
	ended bool
}

// all returns a copy of the list of listeners.
func (ls *listening) all() []*listener {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.open)
}

// notePort sets the port that INFO shows: that of the first TCP listener, or 0.
func (s *Server) notePort() {
	port := 0
	for _, l := range s.listening.all() {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			port = a.Port
			break
		}
	}
	s.port.Store(int64(port))
}

func (s *Server) tcpPort() int { return int(s.port.Load()) }

// Addr returns the address of the first listener for clients.
func (s *Server) Addr() net.Addr { return s.listening.all()[0].Addr() }

func (s *Server) addresses() []string {
	var all []string
	for _, l := range s.listening.all() {
		all = append(all, l.Addr().String())
	}
	return all
}
