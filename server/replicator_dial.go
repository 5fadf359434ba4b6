package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/cellserver/cellserver/tlsconfig"
)

// dial opens a connection to a primary, with TLS if tls-replication is yes. It returns an error if
// that takes longer than repl-timeout.
func (r *replicator) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c := r.s.config.Replication()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	dial := r.s.given.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	if !c.TLS {
		return dial(ctx, network, address)
	}
	conf, err := tlsconfig.Client(r.s.config.TLSOptions()) // read for each connection, since the certificate files may have changed
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if conf.ServerName == "" {
		conf.ServerName, _, _ = net.SplitHostPort(address) // there is no error, because dial has connected to address
	}
	secure := tls.Client(conn, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// dialLink opens the connection of the replication link and registers it, so that CLIENT LIST shows
// it.
func (r *replicator) dialLink(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return r.s.engine.Link(conn), nil
}
