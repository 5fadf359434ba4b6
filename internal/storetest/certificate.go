package storetest

import (
	"crypto/tls"
	"testing"

	"github.com/cellserver/cellserver/internal/certtest"
)

// Certificates has the files of a certificate authority for one test, and of a certificate that the
// authority has signed. The certificate is valid for servers and clients, and for 127.0.0.1 and
// localhost.
type Certificates struct {
	Authority, Certificate, Key string
	config                      *tls.Config
}

// NewCertificates creates certificates in temporary folders of the test.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	authority := certtest.New(t)
	node := authority.Issue(t, certtest.Subject{Name: "node of a test"})
	c := &Certificates{Authority: authority.File, Certificate: node.CertFile, Key: node.KeyFile, config: authority.Client(node)}
	c.config.ServerName = "" // without a name, package tls compares the certificate with the address that was dialled
	return c
}

// Config returns a new configuration of a client that trusts the authority and presents the
// certificate.
func (c *Certificates) Config() *tls.Config { return c.config.Clone() }
