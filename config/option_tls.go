package config

import (
	"strings"

	"github.com/cellserver/cellserver/tlsconfig"
)

func tlsOptions() []option {
	return []option{
		{name: "tls-port", def: "0", kind: integer{0, 65535, ""}, mutable: true, doc: "TCP port for clients with TLS. 0 listens on no port. Set port to 0 to refuse connections without TLS."},
		{name: "tls-cert-file", def: "", kind: text{}, mutable: true, doc: "Certificate of the server in PEM, followed by intermediate certificates. Setting it reads the file again."},
		{name: "tls-key-file", def: "", kind: text{}, mutable: true, doc: "Private key of the certificate in PEM."},
		{name: "tls-key-file-pass", def: "", kind: text{}, mutable: true, secret: true, doc: "Password of the private key, if it is encrypted."},
		{name: "tls-ca-cert-file", def: "", kind: text{}, mutable: true, doc: "Certificates of the authorities that sign client certificates, in PEM."},
		{name: "tls-ca-cert-dir", def: "", kind: text{}, mutable: true, doc: "Directory of files like that of tls-ca-cert-file, with any names."},
		{name: "tls-auth-clients", def: "yes", kind: choice{"yes", "no", "optional"}, mutable: true, doc: "Whether clients need a certificate. With optional they need none, but a certificate that a client sends has to be valid."},
		{name: "tls-auth-clients-user", def: "off", kind: choice{"off", "CN", "URI"}, mutable: true, doc: "Which field of a client certificate is the user name: the common name, or the first URI among its alternative names that is a user. The user has to exist and be on; otherwise the client authenticates as usual."},
		{name: "tls-protocols", def: "", kind: tlsProtocols{}, mutable: true, doc: "Versions of TLS. An empty value means \"TLSv1.2 TLSv1.3\". Older versions are not supported."},
		{name: "tls-ciphers", def: "", kind: tlsCiphers{}, mutable: true, doc: "Cipher suites of TLS 1.2, as a list in the syntax of OpenSSL. Empty means those with ECDHE and an AEAD cipher."},
		{name: "tls-ciphersuites", def: "", kind: text{}, mutable: true, doc: "Cipher suites of TLS 1.3. They are fixed, so the value has no effect: AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305."},
		{name: "tls-session-caching", def: "yes", kind: boolean{}, mutable: true, doc: "Let clients resume sessions, which saves most of a handshake. Clients keep tickets for that, and the server keeps nothing. A reload invalidates the tickets."},
	}
}

// tlsProtocols is the kind of a list of TLS versions that package tlsconfig knows, separated by
// spaces.
type tlsProtocols struct{}

func (tlsProtocols) parse(v string) (string, error) {
	names := strings.Fields(v)
	return strings.Join(names, " "), tlsconfig.CheckProtocols(names)
}

func (tlsProtocols) hint() string { return "versions" }

// tlsCiphers is the kind of a list of cipher suites that package tlsconfig knows.
type tlsCiphers struct{}

func (tlsCiphers) parse(v string) (string, error) {
	v, err := text{}.parse(v)
	if err != nil {
		return "", err
	}
	return v, tlsconfig.CheckCiphers(tlsconfig.SplitCiphers(v))
}

func (tlsCiphers) hint() string { return "list" }
