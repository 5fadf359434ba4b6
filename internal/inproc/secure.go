package inproc

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
)

// Secure is a [Node] with two ports, one of them with TLS.
type Secure struct {
	*Node
	// Authority has signed Pair, the certificate of the server. It must also sign the certificates
	// of clients.
	Authority *certtest.Authority
	Pair      certtest.Pair
	// TLSPort is the number of the port with TLS. The other port is Port.
	TLSPort string
}

// StartTLS does the same as Start for a server with TLS. The server requests no client certificate
// unless options say so.
func (w *World) StartTLS(options ...string) *Secure {
	w.t.Helper()
	s := &Secure{Authority: certtest.New(w.t), TLSPort: strconv.Itoa(Port + 1)}
	s.Pair = s.Authority.Issue(w.t, certtest.Subject{Name: "server"})
	s.Node = w.Start(append([]string{
		"--tls-port", s.TLSPort, "--tls-cert-file", s.Pair.CertFile, "--tls-key-file", s.Pair.KeyFile,
		"--tls-ca-cert-file", s.Authority.File, "--tls-auth-clients", "no",
	}, options...)...)
	return s
}

// DialPort connects a client without TLS to the given port of the node.
func (n *Node) DialPort(port string) *Client {
	n.world.t.Helper()
	return n.DialAt(n.Host, net.JoinHostPort(n.Host, port))
}

// OpenAt reports whether the node listens on port.
func (n *Node) OpenAt(port string) bool {
	n.world.t.Helper()
	conn, err := n.world.Net.Dial(n.world.t.Context(), n.Host, net.JoinHostPort(n.Host, port))
	return err == nil && conn.Close() == nil
}

// Take occupies port of the node by another listener until the end of the test.
func (n *Node) Take(port string) {
	n.world.t.Helper()
	l, err := n.world.Net.Listen(net.JoinHostPort(n.Host, port))
	require.NoError(n.world.t, err)
	n.world.t.Cleanup(func() { _ = l.Close() }) // the error does not matter, because Close cannot fail
}

// Handshake connects to the TLS port and performs the handshake.
func (s *Secure) Handshake(conf *tls.Config) (*tls.Conn, error) {
	return s.HandshakeAt(s.TLSPort, conf)
}

// HandshakeAt connects to port, which need not be one with TLS, and performs a TLS handshake.
func (n *Node) HandshakeAt(port string, conf *tls.Config) (*tls.Conn, error) {
	n.world.t.Helper()
	ctx := n.world.t.Context()
	raw, err := n.world.Net.Dial(ctx, n.Host, net.JoinHostPort(n.Host, port))
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, conf)
	// The deadline is not in the context, because another goroutine would watch the context.
	if err := raw.SetDeadline(time.Now().Add(Patience)); err != nil {
		return nil, err
	}
	if err := conn.HandshakeContext(context.WithoutCancel(ctx)); err != nil {
		_ = raw.Close() // the error of the handshake says more than an error of Close
		return nil, err
	}
	return conn, nil
}

// DialTLS connects a client with TLS. It fails the test if that does not succeed.
func (s *Secure) DialTLS(conf *tls.Config) *Client {
	s.world.t.Helper()
	conn, err := s.Handshake(conf)
	require.NoError(s.world.t, err)
	return NewClient(s.world.t, conn)
}

// Serves reports whether the server replies to a client with the given configuration. With TLS 1.3,
// a client whose certificate is refused learns that only when it reads.
func (s *Secure) Serves(conf *tls.Config) bool {
	s.world.t.Helper()
	conn, err := s.Handshake(conf)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // the server may have closed the connection
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	answer := make([]byte, len("+PONG\r\n"))
	_, err = io.ReadFull(conn, answer)
	return err == nil && string(answer) == "+PONG\r\n"
}
