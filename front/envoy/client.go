package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
)

// credentialsOf says which client of the server a connection is, after the TLS handshake if the port has TLS. Calls find the
// client as the AuthInfo of their peer.
type credentialsOf struct{ s *Server }

// ServerHandshake implements [credentials.TransportCredentials].
func (c *credentialsOf) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	of := &raw.(*connection).client
	if c.s.config.TLS == nil {
		return guard(raw, of), of, nil
	}
	over, info, err := credentials.NewTLS(onlyHTTP2(c.s.config.TLS)).ServerHandshake(raw)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // grpc-go logs it
	}
	state := info.(credentials.TLSInfo).State
	of.tls = &state
	return guard(over, of), of, nil
}

// errProtocol ends the handshake of a client that would not speak HTTP/2.
var errProtocol = errors.New("the client does not offer h2 by ALPN")

// onlyHTTP2 returns the configuration c for connections of HTTP/2 alone. A handshake with a client that does not offer it fails:
// otherwise crypto/tls completes that of a client which offers http/1.1.
func onlyHTTP2(c *tls.Config) *tls.Config {
	only, of := c.Clone(), c.GetConfigForClient
	only.NextProtos = []string{http2.NextProtoTLS}
	only.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if !slices.Contains(hello.SupportedProtos, http2.NextProtoTLS) {
			return nil, errProtocol
		}
		if of == nil {
			return nil, nil //nolint:nilnil // only itself, for crypto/tls
		}
		is, err := of(hello)
		if is == nil || err != nil {
			return nil, err
		}
		is = is.Clone()
		is.NextProtos = only.NextProtos
		return is, nil
	}
	return only
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

// client is the server's state of a connection, and the AuthInfo of its calls.
type client struct {
	tls     *tls.ConnectionState // state of the TLS connection; nil without TLS
	hangup  func()               // function that closes the connection
	meter   meter
	running atomic.Int64 // bytes of the calls that run, and of the answers that grpc-go has not written
	watches atomic.Int64 // number of running calls of Watch

	mu     sync.Mutex // mu guards the fields below
	caller Caller     // the client of the server; nil after the end of the connection
	user   bool       // whether caller has logged in
}

// kept returns the number of bytes that the connection takes. Any goroutine may call it.
func (c *client) kept() int64 { return idleKept + c.meter.held.Load() + c.running.Load() }

// AuthType implements [credentials.AuthInfo].
func (*client) AuthType() string { return "client" }

// errGone means that the connection has ended.
var errGone = errors.New("the connection has ended")

// Do implements [descriptors.Caller].
func (c *client) Do(commands []byte, replies int, out []byte) ([]byte, error) {
	caller, err := c.get()
	if err != nil {
		return out, err
	}
	return caller.Do(commands, replies, out) //nolint:wrapcheck // see CodeOf of package descriptors
}

// get returns the caller of c after its login. A refusal applies only to one call, because the next login may succeed.
func (c *client) get() (Caller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caller == nil {
		return nil, errGone
	}
	if !c.user {
		if err := c.caller.Login(c.tls); err != nil {
			return nil, err //nolint:wrapcheck // see CodeOf of package descriptors
		}
		c.user = true
	}
	return c.caller, nil
}

// touch notes that the client is active.
func (c *client) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caller != nil {
		c.caller.Touch()
	}
}

func (c *client) close() {
	c.mu.Lock()
	caller := c.caller
	c.caller = nil
	c.mu.Unlock()
	if caller != nil {
		caller.Close()
	}
}

// answers is the pool of the buffers with the answers to c. A buffer counts until grpc-go has written it.
type answers struct{ c *client }

// Get implements [mem.BufferPool].
func (a answers) Get(length int) *[]byte {
	b := mem.DefaultBufferPool().Get(length)
	a.c.running.Add(int64(cap(*b)))
	return b
}

// Put implements [mem.BufferPool].
func (a answers) Put(b *[]byte) {
	a.c.running.Add(-int64(cap(*b)))
	mem.DefaultBufferPool().Put(b)
}
