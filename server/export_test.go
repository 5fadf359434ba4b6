package server

import (
	"context"
	"crypto/tls"

	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/transport"
)

// NewTransport makes a transport of a kind.
var NewTransport = newTransport

// Stats returns the counters of the transport.
func (s *Server) Stats() transport.Stats { return s.transport.Stats() }

// NotReady returns the reply of /readyz if the transport were another one. Use it only on a server
// without sockets.
func (s *Server) NotReady(ctx context.Context, over transport.Transport) string {
	s.transport = over
	return s.notReady(ctx)
}

// HoldsLong reports whether an exclusive command makes the server not ready.
var HoldsLong = holdsLong

// ClientAuth returns how the TLS port requests client certificates.
func (s *Server) ClientAuth() tls.ClientAuthType { return s.tls.clients.Load().ClientAuth }

// Rules returns the rules of rls-config in force.
func (s *Server) Rules() []*rls.Rule { return s.rulesInForce().Rules() }
