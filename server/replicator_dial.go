package server

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/cellserver/cellserver/tlsconfig"
)

// dial opens a connection to a primary.
func (r *replicator) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c := r.s.config.Replication()
	d := net.Dialer{Timeout: c.Timeout}
	if !c.TLS {
		return d.DialContext(ctx, network, address)
	}
	conf, err := tlsconfig.Client(r.s.config.TLSOptions()) // the files may be others by now
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &d, Config: conf}).DialContext(ctx, network, address)
}

// dialLink opens the connection that follows a primary, which CLIENT LIST shows.
func (r *replicator) dialLink(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return r.s.engine.Link(conn), nil
}
