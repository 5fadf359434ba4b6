package transport

import (
	"crypto/tls"
	"net"

	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// TLSListener is a listener whose clients speak TLS. Every transport serves it; others,
// such as net/http, can use it as any listener, since what it accepts is a [tls.Conn].
type TLSListener struct {
	net.Listener
	config func() *tls.Config
}

// NewTLSListener makes the clients of l speak TLS. config is asked for each connection,
// from any goroutine. A configuration that replaces another has to be a new one: a clone
// has the ticket keys of its original, so old tickets would pass a changed authority.
func NewTLSListener(l net.Listener, config func() *tls.Config) *TLSListener {
	return &TLSListener{l, config}
}

// Config returns the configuration for the next connection, for a transport that does not use
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

// Handshaken is a [Session] that is told the outcome of the handshake.
type Handshaken interface {
	// Handshaken is told what the handshake of a connection with TLS found out, before the
	// first Feed.
	Handshaken(is *tls.ConnectionState)
}

// Explainer is a [Handler] that has something to say to clients that do not speak TLS on
// a port that expects it.
type Explainer interface {
	// ExplainTLS returns what such a client is sent before its connection is closed.
	ExplainTLS() []byte
}
