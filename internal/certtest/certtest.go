// Package certtest creates certificates for tests: an [Authority], and certificates signed by it.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority is a certificate authority, which signs certificates.
type Authority struct {
	// File is the path of the certificate of the authority, in PEM.
	File string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Subject describes the certificate to issue. Name is the common name, URIs are alternative names,
// and Expired makes the certificate one that has expired.
type Subject struct {
	Name    string
	URIs    []string
	Expired bool
	// RSA selects an RSA key instead of an ECDSA key.
	RSA bool
}

// Pair is a certificate with its key, as files in PEM and in the form of package tls.
type Pair struct {
	CertFile, KeyFile string
	TLS               tls.Certificate
}

// hosts returns the addresses for which certificates are valid. They are loopback addresses; the
// hosts of a simulated network have some of them.
func hosts() (all []net.IP) {
	for i := range byte(16) {
		all = append(all, net.IPv4(127, 0, 0, i+1))
	}
	return all
}

// New creates an authority. Its file is removed at the end of the test.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.crt")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.key = key
	write(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue returns a new certificate for s, which is valid for clients, and for servers on this
// machine.
func (a *Authority) Issue(t testing.TB, s Subject) Pair {
	t.Helper()
	key := newKey(t, s.RSA)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.Name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(999 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: hosts(),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if s.Expired {
		template.NotAfter = time.Now().Add(-time.Minute)
	}
	for _, text := range s.URIs {
		u, err := url.Parse(text)
		require.NoError(t, err)
		template.URIs = append(template.URIs, u)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	p := Pair{CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key")}
	write(t, p.CertFile, "CERTIFICATE", der)
	write(t, p.KeyFile, "PRIVATE KEY", keyDER)
	p.TLS, err = tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	require.NoError(t, err)
	return p
}

func newKey(t testing.TB, isRSA bool) crypto.Signer {
	t.Helper()
	if isRSA {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		require.NoError(t, err)
		return key
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// Client returns the configuration of a client that trusts certificates of a and presents those in
// shows.
func (a *Authority) Client(shows ...Pair) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	conf := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	for _, p := range shows {
		conf.Certificates = append(conf.Certificates, p.TLS)
	}
	return conf
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
