package transport

import (
	"crypto/tls"
	"net"

	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// TLSListener is a listener for TLS clients. Every transport can serve it. Other servers, such as
// net/http, can use it like any listener, since it accepts a [tls.Conn].
type TLSListener struct {
	net.Listener
	config func() *tls.Config
}

// NewTLSListener returns a listener that expects TLS from the clients of l. config is called for
// each connection, from any goroutine. When the configuration changes, config must return a new one
// and not a clone: a clone has the ticket keys of its original, so old session tickets would pass
// although the certificate authority has changed.
func NewTLSListener(l net.Listener, config func() *tls.Config) *TLSListener {
	return &TLSListener{l, config}
}

// Config returns the configuration for the next connection. It is for transports that do not use
// Accept.
func (l *TLSListener) Config() *tls.Config { return l.config() }

// Accept implements [net.Listener]. It does not wait for the handshake.
func (l *TLSListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&buffer.MeasuredConn{Conn: nc}, l.config()), nil
}

// Handshaken is a [Session] that receives the result of the TLS handshake.
type Handshaken interface {
	// Handshaken is called with the state of the TLS connection before the first Feed.
	Handshaken(is *tls.ConnectionState)
}

// Explainer is a [Handler] with a message for clients that do not speak TLS on a TLS port.
type Explainer interface {
	// ExplainTLS returns the bytes that a client that does not speak TLS receives before its
	// connection is closed.
	ExplainTLS() []byte
}
