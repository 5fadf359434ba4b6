package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// credentialsOf makes a client of each connection, after the TLS handshake if the port has TLS. Calls find the client as the
// AuthInfo of their peer.
type credentialsOf struct{ s *Server }

// ServerHandshake implements [credentials.TransportCredentials].
func (c *credentialsOf) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	nc := raw
	about := Connection{Remote: raw.RemoteAddr(), Local: raw.LocalAddr(), Hangup: func() { _ = raw.Close() }}
	if c.s.config.TLS != nil {
		over, info, err := credentials.NewTLS(c.s.config.TLS).ServerHandshake(raw)
		if err != nil {
			return nil, nil, err //nolint:wrapcheck // grpc-go logs it
		}
		state := info.(credentials.TLSInfo).State
		nc, about.TLS = over, &state
	}
	of := &client{open: c.s.config.Open, about: about}
	return &connection{Conn: nc, client: of}, of, nil
}

// ClientHandshake implements [credentials.TransportCredentials]. A server does not call it.
func (*credentialsOf) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.ErrUnsupported
}

// Info implements [credentials.TransportCredentials].
func (c *credentialsOf) Info() credentials.ProtocolInfo {
	if c.s.config.TLS != nil {
		return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}).Info()
	}
	return credentials.ProtocolInfo{}
}

// Clone implements [credentials.TransportCredentials].
func (c *credentialsOf) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements [credentials.TransportCredentials]. A server does not call it.
func (*credentialsOf) OverrideServerName(string) error { return errors.ErrUnsupported }

// connection is a connection whose end is that of its client.
type connection struct {
	net.Conn
	client *client
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.client.close()
	return c.Conn.Close()
}

// client is the client of a connection, and the AuthInfo of its calls. It begins with the first call, so that connections
// without a call, such as those of health checks, are no clients.
type client struct {
	open  func(Connection) (Caller, error)
	about Connection

	mu     sync.Mutex
	caller Caller
	ended  bool
}

// AuthType implements [credentials.AuthInfo].
func (*client) AuthType() string { return "client" }

// errGone says that the connection has ended.
var errGone = errors.New("the connection has ended")

// Do implements [descriptors.Caller].
func (c *client) Do(commands []byte, replies int, out []byte) ([]byte, error) {
	caller, err := c.get()
	if err != nil {
		return out, err
	}
	return caller.Do(commands, replies, out) //nolint:wrapcheck // see CodeOf of package descriptors
}

// get returns the caller of c. A refusal is that of one call: the reason may be gone at the next one.
func (c *client) get() (Caller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return nil, errGone
	case c.caller != nil:
		return c.caller, nil
	}
	opened, err := c.open(c.about)
	if err != nil {
		return nil, err
	}
	c.caller = opened
	return opened, nil
}

func (c *client) close() {
	c.mu.Lock()
	caller := c.caller
	c.caller, c.ended = nil, true
	c.mu.Unlock()
	if caller != nil {
		caller.Close()
	}
}
