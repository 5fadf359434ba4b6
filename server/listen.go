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

// listener is one of the listeners for clients.
type listener struct {
	net.Listener
	option string // the option that it was opened for
	// late says that it was opened while the server was running: the server continues if it fails.
	late    bool
	retired atomic.Bool
}

// listen opens the listeners of the configuration, or uses the given ones. For an option with
// inherited sockets it opens none.
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

// portOptions are the options for client ports, in the order of [listening].
var portOptions = []string{"port", "tls-port"}

var errNoListener = errors.New("nothing to listen on: bind is empty or port and tls-port are 0, and there is no unixsocket")

// optionOf returns the option that would have opened l.
func optionOf(l net.Listener) string {
	switch l.(type) {
	case *transport.TLSListener:
		return "tls-port"
	case *net.UnixListener:
		return "unixsocket"
	}
	return "port"
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
		return "tcp4", address // Go would take 0.0.0.0 for every address of both families
	}
	return "tcp", address
}

// listenTCP opens the port of an option on all addresses of c, with or without TLS. An address that
// begins with "-" may be missing on this machine. On an error it also returns the listeners that it
// has opened before.
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

// openPort opens a TCP port. It is plain TCP: with Multipath TCP, which Go prefers, accepted
// connections do not inherit the options of the listener.
func (s *Server) openPort(network, address string) (net.Listener, error) {
	if s.given.Listen != nil {
		return s.given.Listen(network, address)
	}
	c := &net.ListenConfig{}
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), network, address)
}

// missingAddress reports whether the machine lacks the address or its family.
func missingAddress(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listenUnix opens the socket. It is created without permissions and gets unixsocketperm
// afterwards, so that a process without permission can never connect (the class of CVE-2023-45145).
// A socket without a server is left over from a crash, and is replaced.
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

// isSocket distinguishes a socket from a file that was named by mistake: both refuse
// connections, but only a socket may be removed.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// listening has the listeners of the server.
type listening struct {
	mu    sync.Mutex        // guards the fields below
	open  []*listener       // first those of port, then of tls-port, then of unixsocket
	serve func(l *listener) // nil before Run
	ended bool
}

// all returns the listeners.
func (ls *listening) all() []*listener {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.open)
}

// notePort sets the port that INFO shows.
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

// Addr returns the first address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listening.all()[0].Addr() }

func (s *Server) addresses() []string {
	var all []string
	for _, l := range s.listening.all() {
		all = append(all, l.Addr().String())
	}
	return all
}
