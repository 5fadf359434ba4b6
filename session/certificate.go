package session

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/resp"
)

// Handshaken implements [transport.Handshaken]: it makes the client the user whom its
// certificate names, if there is such a user and that is on. Otherwise the client is what
// it would be without a certificate, and may authenticate.
func (s *Session) Handshaken(is *tls.ConnectionState) {
	from := s.engine.Limits().CertificateUser
	if len(is.VerifiedChains) == 0 || from == "off" {
		return
	}
	for _, name := range namesOf(is.PeerCertificates[0], from) {
		if s.LoginAs(func() (*acl.User, bool) { return s.engine.Users.ByName(name) }) {
			return
		}
	}
}

// namesOf returns which users a certificate may stand for, the first that exists counts:
// with CN the common name of its subject, with URI the URIs among its alternative names.
func namesOf(cert *x509.Certificate, from string) (names []string) {
	switch from {
	case "CN":
		names = append(names, cert.Subject.CommonName)
	case "URI":
		for _, u := range cert.URIs {
			names = append(names, u.String())
		}
	}
	return names
}

// errPlain is sent to a client that does not speak TLS.
const errPlain resp.Error = "ERR this port speaks TLS: connect with TLS, for example by redis-cli --tls, or to the port without"

// ExplainTLS implements [transport.Explainer].
func (e *Engine) ExplainTLS() []byte {
	w := resp.Writer{}
	w.Error(errPlain)
	return w.Buf
}
