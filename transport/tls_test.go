package transport_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// selfSigned returns a server's configuration and a client's that trusts it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
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

func (r *rig) dialTLS(conf *tls.Config) *client {
	r.t.Helper()
	nc, err := tls.Dial("tcp", r.addr.String(), conf)
	require.NoError(r.t, err)
	require.NoError(r.t, nc.SetDeadline(time.Now().Add(patience)))
	r.t.Cleanup(func() { _ = nc.Close() }) // closed already, where the server hung up
	return &client{t: r.t, Conn: nc, r: bufio.NewReader(nc)}
}

// A wake interrupts a blocked read, here in the middle of whatever TLS is reading.
func TestGoroutineServesTLS(t *testing.T) {
	serverConf, clientConf := selfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := startOn(t, newGoroutine, newLineHandler(), transport.DefaultLimits(), tls.NewListener(l, serverConf))
	c := r.dialTLS(clientConf)
	large := strings.Repeat("L", 300_000)
	for range 50 {
		c.send("echo 1")
		r.session(0).push("pushed")
		got := []string{}
		for range 2 {
			line, err := c.r.ReadString('\n')
			require.NoError(t, err)
			got = append(got, line)
		}
		require.ElementsMatch(t, []string{"1\n", "pushed\n"}, got)
	}
	c.send("echo "+large, "park a", "echo 2")
	c.expect(large)
	r.eventually(func() bool { return r.h.isParked("a") })
	r.h.finish("a", "A")
	c.expect("A", "2")
	c.send("echo 3", "bye")
	c.expect("3", "bye")
	c.expectEnd()

	d := r.dialTLS(clientConf)
	d.send("echo 1")
	d.expect("1")
	r.session(1).peer.Abort()
	r.eventually(r.session(1).closed.Load)
}
