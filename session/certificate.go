package session

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// Handshaken implements [transport.Handshaken]: it logs the client in as the first user that is named
// in its verified certificate, exists and is on. If there is none, nothing changes, and the client
// may authenticate by a command.
func (s *Session) Handshaken(is *tls.ConnectionState) {
	for _, name := range s.engine.certified(is) {
		if s.LoginAs(func() (*acl.User, bool) { return s.engine.Users.ByName(name) }) {
			return
		}
	}
}

// certified returns the names of users in the certificate of a connection, in the order in which they are tried. There
// are none if the certificate was not verified.
func (e *Engine) certified(is *tls.ConnectionState) []string {
	from := e.Limits().CertificateUser
	if len(is.VerifiedChains) == 0 || from == "off" {
		return nil
	}
	return namesOf(is.PeerCertificates[0], from)
}

// Certified returns the name of the first user that is named in the verified certificate of a connection, exists and
// is on. ok is false if there is none.
func (e *Engine) Certified(is *tls.ConnectionState) (user string, ok bool) {
	for _, name := range e.certified(is) {
		if _, ok := e.Users.ByName(name); ok {
			return name, true
		}
	}
	return "", false
}

// Introduce implements direct.Session.
func (s *Session) Introduce(library string) { s.Identify(command.Identity{LibName: library}) }

// Touch implements direct.Session.
func (s *Session) Touch() { s.active.Store(int64(s.engine.Options.Now())) }

// errNoUser is the refusal of a client of another port whose user cannot be logged in.
const errNoUser resp.Error = "NOAUTH the user of the request does not exist or is off"

// Enter implements direct.Session. The error is a resp.Error: that of protected mode, or that the user does not exist or is off.
func (s *Session) Enter(user string) error {
	if why := refuse(&s.engine.Server, s.Peer); why != "" {
		return why
	}
	if !s.LoginAs(func() (*acl.User, bool) { return s.engine.Users.ByName(user) }) {
		return errNoUser
	}
	return nil
}

// namesOf returns the user names in the certificate cert, in the order in which they are tried.
// from is the option that says where the names are: for "CN" the common name of the subject, for
// "URI" the URIs among the subject alternative names. For any other value there are no names.
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

// errPlain is sent to a client that does not speak TLS on a port that expects TLS.
const errPlain resp.Error = "ERR this port speaks TLS: connect with TLS, for example by redis-cli --tls, or to the port without"

// ExplainTLS implements [transport.Explainer]: it returns the error reply for a client that does
// not speak TLS on a port that expects TLS.
func (e *Engine) ExplainTLS() []byte {
	w := resp.Writer{}
	w.Error(errPlain)
	return w.Buf
}
