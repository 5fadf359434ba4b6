package transporttest

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// SelfSigned returns the configuration of a server with a self-signed certificate, and that of a
// client that trusts it.
func SelfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"localhost"},
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots, ServerName: "localhost"}
}

// DialTLS connects a client with this configuration.
func (r *Rig) DialTLS(conf *tls.Config) *Client {
	r.T.Helper()
	nc, err := tls.Dial("tcp", r.Addr.String(), conf)
	require.NoError(r.T, err)
	require.NoError(r.T, nc.SetDeadline(time.Now().Add(Patience)))
	r.T.Cleanup(func() { _ = nc.Close() }) // the connection is closed already if the server has hung up
	return &Client{T: r.T, Conn: nc, Reader: bufio.NewReader(nc)}
}

// OverTLS is a transport whose clients speak TLS.
type OverTLS struct {
	transport.Transport
	ServerConfig, ClientConfig *tls.Config
	listeners                  sync.Map // the TLS listeners, by the listeners below them
}

// Serve implements [transport.Transport].
func (o *OverTLS) Serve(l net.Listener) error {
	return o.Transport.Serve(o.over(l))
}

// Retire implements [transport.Transport].
func (o *OverTLS) Retire(l net.Listener) { o.Transport.Retire(o.over(l)) }

// over returns the TLS listener over l. It creates the listener at the first call for l.
func (o *OverTLS) over(l net.Listener) net.Listener {
	over, _ := o.listeners.LoadOrStore(l, transport.NewTLSListener(l, func() *tls.Config { return o.ServerConfig }))
	return over.(net.Listener)
}

// Secured returns a factory that adds TLS of the given version to the transports of f.
func Secured(t *testing.T, f Factory, version uint16) Factory {
	server, client := SelfSigned(t)
	server.MinVersion, server.MaxVersion = version, version
	server.DynamicRecordSizingDisabled = true
	return func(h transport.Handler, lim transport.Limits, clock *Clock) transport.Transport {
		return &OverTLS{Transport: f(h, lim, clock), ServerConfig: server, ClientConfig: client}
	}
}
