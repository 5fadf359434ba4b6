package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cellserver/cellserver/front/login"
	"github.com/cellserver/cellserver/listen"
)

// A connection is closed after these times: until the header of a request is complete, until the
// body is complete, until the response has been sent, and between two requests.
const (
	headerTime = 5 * time.Second
	bodyTime   = 10 * time.Second
	answerTime = 30 * time.Second
	idleTime   = time.Minute
)

// New returns a server. It serves no requests until Serve is called.
func New(c Config) *Server {
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		Config: c, conns: listen.NewConnections(c.MaxConnections + ProbeConnections), serving: make(chan struct{}, c.MaxConnections),
		door: login.New(c.Users, c.Logins),
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // with HTTP/1 each connection has one request at a time, which is easy to bound
	s.http = http.Server{
		Handler:           s.Handler(),
		Protocols:         &protocols,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    MaxHeader,
		ConnContext:       s.conns.Context,
		// The messages of package http are about errors of clients, such as a failed handshake, so
		// clients could fill the log with them.
		ErrorLog: log.New(discard{}, "", 0),
	}
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Handler returns the handler of all requests. It also replies to a request whose handler panics.
func (s *Server) Handler() http.Handler {
	routes := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.conns.Serving(r.Context(), true)
		defer s.conns.Serving(r.Context(), false)
		defer s.recovered(w)
		routes.ServeHTTP(w, r)
	})
}

// recovered replies to a request whose handler has panicked. The reply does not contain the panic
// value, which may hold a key.
func (s *Server) recovered(w http.ResponseWriter) {
	if recover() != nil {
		s.Log.Error("a request to the admin port failed on an internal error")
		refuse(w, http.StatusInternalServerError, "internal error")
	}
}

// Serve accepts connections from l until Shutdown, and then returns nil. If accepting fails before
// that, it returns the error.
func (s *Server) Serve(l net.Listener) error {
	l = s.conns.Bound(l)
	if s.TLS != nil {
		l = tls.NewListener(l, s.TLS)
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the admin port: %w", err)
	}
	return nil
}

// Shutdown stops accepting connections and waits for running requests. When ctx ends, it closes the
// connections of the requests that still run. The error comes from closing connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.door.Stop()
	if err := s.http.Shutdown(ctx); err != nil {
		return s.http.Close() //nolint:wrapcheck // of listeners that are closed already
	}
	return nil
}
