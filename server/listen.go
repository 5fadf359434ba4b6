package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/listen"
	"github.com/cellserver/cellserver/transport"
)

// listener is one of the server's listeners for clients.
type listener struct {
	net.Listener
	option string // name of the option for which the listener was opened
	// late says that the listener was opened while the server was running. If it fails, the server
	// continues. retired says that the listener has been closed on purpose.
	late    bool
	retired atomic.Bool
}

// listen sets the listeners for clients. If given is not nil, it uses those in given. Otherwise it
// uses, for each option, its inherited sockets, or else opens the listeners that the option
// describes, and returns an error if there is no listener at all, and no port of a front either.
// listen also sets the port that INFO shows.
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
		if err != nil {
			return err
		}
		*open = append(*open, opened...)
	}
	if path := s.config.Path("unixsocket"); !s.useInherited("unixsocket") && path != "" {
		l, err := s.listenUnix(path)
		if err != nil {
			return err
		}
		*open = append(*open, &listener{Listener: l, option: "unixsocket"})
	}
	if len(*open) == 0 && !s.hasFront() {
		return errNoListener
	}
	s.notePort()
	return nil
}

// hasFront reports whether the server has a port for decisions in another protocol: http-port or rls-port.
func (s *Server) hasFront() bool {
	return len(s.config.HTTPAddresses()) > 0 || len(s.config.ServiceAddresses()) > 0 ||
		len(s.given.Inherited["http-port"]) > 0 || len(s.given.Inherited["rls-port"]) > 0
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

// listenTCP opens the port of option on all addresses of c, with TLS if option is tls-port. It
// opens nothing if the port is 0 or there are no addresses. On an error it has closed all listeners
// that it opened.
func (s *Server) listenTCP(c *config.Config, option string) (opened []*listener, err error) {
	addresses, port := c.Addresses(), c.Value(option)
	if len(addresses) == 0 || port == "0" {
		return nil, nil
	}
	all, err := listen.TCP(listen.Options{Addresses: addresses, Port: port, Backlog: int(c.Number("tcp-backlog")), Open: s.given.Listen})
	for _, l := range all {
		if option == "tls-port" {
			l = transport.NewTLSListener(l, s.tls.clients.Load)
		}
		opened = append(opened, &listener{Listener: l, option: option})
	}
	return opened, err
}

// listenUnix opens a Unix socket at path, with the permissions of unixsocketperm.
func (s *Server) listenUnix(path string) (net.Listener, error) {
	perm, err := strconv.ParseUint(s.config.Value("unixsocketperm"), 8, 32)
	if err != nil {
		return nil, fmt.Errorf("unixsocketperm: %w", err)
	}
	return listen.Unix(path, os.FileMode(perm))
}

// listening has the listeners for clients.
type listening struct {
	mu    sync.Mutex        // mu guards the fields below
	open  []*listener       // the listeners in the order port, tls-port, unixsocket
	serve func(l *listener) // function that serves a listener; nil before Run
	ended bool              // whether replaceListeners must not add listeners any more
}

// all returns a copy of the list of listeners.
func (ls *listening) all() []*listener {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.open)
}

// notePort sets the port that INFO shows, which is the port of the first TCP listener, or 0.
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

// Addr returns the address of the first listener for clients. There must be a listener.
func (s *Server) Addr() net.Addr { return s.listening.all()[0].Addr() }

func (s *Server) addresses() []string {
	var all []string
	for _, l := range s.listening.all() {
		all = append(all, l.Addr().String())
	}
	return all
}
