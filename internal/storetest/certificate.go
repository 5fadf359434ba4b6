package storetest

import (
	"crypto/tls"
	"testing"

	"github.com/cellserver/cellserver/internal/certtest"
)

// Certificates are the files of an authority for one test, and of a certificate that it has signed,
// which is valid for 127.0.0.1 and localhost, and for servers and clients.
type Certificates struct {
	Authority, Certificate, Key string
	config                      *tls.Config
}

// NewCertificates creates certificates in a folder of the test.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	authority := certtest.New(t)
	node := authority.Issue(t, certtest.Subject{Name: "node of a test"})
	c := &Certificates{Authority: authority.File, Certificate: node.CertFile, Key: node.KeyFile, config: authority.Client(node)}
	c.config.ServerName = "" // Go then compares the certificate with the dialled address
	return c
}

// Config returns the configuration of a client that trusts the authority and presents the
// certificate.
func (c *Certificates) Config() *tls.Config { return c.config.Clone() }
