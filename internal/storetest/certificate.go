package storetest

import (
	"crypto/tls"
	"testing"

	"github.com/cellserver/cellserver/internal/certtest"
)

// Certificates are the files of an authority made for one test and of a certificate that
// it has signed, which is good for 127.0.0.1 and localhost, and for servers and clients.
type Certificates struct {
	Authority, Certificate, Key string
	config                      *tls.Config
}

// NewCertificates makes them in a folder of the test.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	authority := certtest.New(t)
	node := authority.Issue(t, certtest.Subject{Name: "node of a test"})
	c := &Certificates{Authority: authority.File, Certificate: node.CertFile, Key: node.KeyFile, config: authority.Client(node)}
	c.config.ServerName = "" // the certificate is compared with what is dialled
	return c
}

// Config is what a client needs that trusts the authority and shows the certificate.
func (c *Certificates) Config() *tls.Config { return c.config.Clone() }
