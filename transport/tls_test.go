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
	"sync"
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

// overTLS is a transport whose clients speak TLS.
type overTLS struct {
	transport.Transport
	server, client *tls.Config
	listeners      sync.Map // of TLS, by those below them
}

func (o *overTLS) Serve(l net.Listener) error {
	return o.Transport.Serve(o.over(l))
}

func (o *overTLS) Retire(l net.Listener) { o.Transport.Retire(o.over(l)) }

// over returns the listener of TLS over l.
func (o *overTLS) over(l net.Listener) net.Listener {
	over, _ := o.listeners.LoadOrStore(l, transport.NewTLSListener(l, func() *tls.Config { return o.server }))
	return over.(net.Listener)
}

// secured returns what f makes with TLS of this version in front.
func secured(t *testing.T, f factory, version uint16) factory {
	server, client := selfSigned(t)
	server.MinVersion, server.MaxVersion = version, version
	server.DynamicRecordSizingDisabled = true
	return func(h transport.Handler, lim transport.Limits, clock *transport.Clock) transport.Transport {
		return &overTLS{Transport: f(h, lim, clock), server: server, client: client}
	}
}

// runTLS holds a transport to the guarantees of the package over TLS 1.3 and 1.2. What is
// only about the bytes of a socket without TLS has tests of its own here.
func runTLS(t *testing.T, f factory) {
	for _, v := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			for _, c := range conformance {
				if c.plain || v == tls.VersionTLS12 && c.slow {
					continue
				}
				t.Run(c.name, func(t *testing.T) { c.test(t, secured(t, f, v)) })
			}
		})
	}
}

func TestGoroutineConformanceOverTLS(t *testing.T) { runTLS(t, newGoroutine) }

// A wake interrupts a blocked read, here in the middle of whatever TLS is reading.
func TestGoroutineServesTLS(t *testing.T) {
	serverConf, clientConf := selfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := startOn(t, newGoroutine, newLineHandler(), patientLimits(), tls.NewListener(l, serverConf))
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
	r.await(func() bool { return r.h.isParked("a") })
	r.h.finish("a", "A")
	c.expect("A", "2")
	c.send("echo 3", "bye")
	c.expect("3", "bye")
	c.expectEnd()

	d := r.dialTLS(clientConf)
	d.send("echo 1")
	d.expect("1")
	r.session(1).peer.Abort()
	r.await(r.session(1).closed.Load)
}
