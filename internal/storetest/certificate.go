package storetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificates are the files of an authority made for one test and of a certificate that
// it has signed, which is good for 127.0.0.1 and localhost, and for servers and clients.
type Certificates struct {
	Authority, Certificate, Key string
}

// NewCertificates makes them in a folder of the test.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	c := &Certificates{
		Authority: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"),
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	authorityKey := newKey(t)
	writeSigned(t, c.Authority, authority, authority, authorityKey, authorityKey)
	node := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node of a test"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	nodeKey := newKey(t)
	writeSigned(t, c.Certificate, node, authority, nodeKey, authorityKey)
	der, err := x509.MarshalECPrivateKey(nodeKey)
	require.NoError(t, err)
	writePEM(t, c.Key, "EC PRIVATE KEY", der)
	return c
}

// Config is what a client needs that trusts the authority and shows the certificate.
func (c *Certificates) Config(t testing.TB) *tls.Config {
	t.Helper()
	authority, err := os.ReadFile(c.Authority)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority))
	own, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
	require.NoError(t, err)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// writeSigned writes the certificate of key, signed by the parent's key.
func writeSigned(t testing.TB, name string, c, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	require.NoError(t, err)
	writePEM(t, name, "CERTIFICATE", der)
}

func writePEM(t testing.TB, name, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
