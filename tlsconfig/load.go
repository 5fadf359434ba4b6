// Package tlsconfig makes a TLS configuration from the settings of an operator. The settings are
// files with certificates and keys, versions of TLS and cipher suites. [Load] reads and checks all
// of them before it returns a configuration, so that a mistake does not change the configuration in
// use. The package neither stores nor uses configurations.
package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/optionfile"
)

// ClientAuth determines whether clients have to present a certificate.
type ClientAuth string

// These are the values of Options.AuthClients, as in the option tls-auth-clients.
const (
	Require ClientAuth = "yes"      // a client must present a valid certificate
	Ignore  ClientAuth = "no"       // no certificate is requested
	Accept  ClientAuth = "optional" // a client may present a certificate, which must be valid
)

// Options has an operator's settings for TLS.
type Options struct {
	CertFile    string     // path of the file with the certificate of the server and the intermediate certificates
	KeyFile     string     // path of the file with the key of the certificate
	KeyFilePass string     // password of the key; "" if the key is not encrypted
	CAFile      string     // path of the file with the certificates of the authorities that sign the certificates of clients
	CADir       string     // path of a directory with such files
	AuthClients ClientAuth // whether clients have to present a certificate
	Protocols   []string   // the allowed versions, such as "TLSv1.3"; empty means TLS 1.2 and 1.3
	Ciphers     []string   // the cipher suites of TLS 1.2: see CheckCiphers; empty means the default ones
	Tickets     bool       // whether clients may resume sessions
}

// Load returns the configuration of a server with the settings o. It reads the files that o names.
// The error has all mistakes that were found. The configuration has ticket keys of its own, so that
// tickets of other configurations are not valid for it.
func Load(o *Options) (*tls.Config, error) {
	conf := &tls.Config{
		// Replies are small, so beginning with short records would cost more than it saves.
		DynamicRecordSizingDisabled: true,
		SessionTicketsDisabled:      !o.Tickets,
	}
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	var err error
	conf.MinVersion, conf.MaxVersion, err = versions(o.Protocols)
	note(err)
	conf.CipherSuites, err = suites(o.Ciphers)
	note(err)
	cert, err := keyPair(o)
	note(err)
	conf.Certificates = []tls.Certificate{cert}
	conf.ClientAuth, err = clientAuth(o)
	note(err)
	conf.ClientCAs, err = authorities(o)
	note(err)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return conf, nil
}

// clientAuth returns the value of crypto/tls for o.AuthClients. It is an error to request
// certificates without naming authorities.
func clientAuth(o *Options) (tls.ClientAuthType, error) {
	switch {
	case o.AuthClients == Ignore:
		return tls.NoClientCert, nil
	case o.CAFile == "" && o.CADir == "":
		return 0, errors.New("either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled")
	case o.AuthClients == Accept:
		return tls.VerifyClientCertIfGiven, nil
	}
	return tls.RequireAndVerifyClientCert, nil
}

// keyPair reads the certificate of the server and the key, and checks that they belong together. It
// returns an error if the options do not name both files.
func keyPair(o *Options) (tls.Certificate, error) {
	if o.CertFile == "" {
		return tls.Certificate{}, errors.New("no tls-cert-file configured")
	}
	if o.KeyFile == "" {
		return tls.Certificate{}, errors.New("no tls-key-file configured")
	}
	cert, err := readFile(o.CertFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls-cert-file: %w", err)
	}
	key, err := readFile(o.KeyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls-key-file: %w", err)
	}
	if key, err = decryptKey(key, o.KeyFilePass); err != nil {
		return tls.Certificate{}, fmt.Errorf("tls-key-file %s: %w", o.KeyFile, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls-cert-file %s with tls-key-file %s: %w", o.CertFile, o.KeyFile, err)
	}
	return pair, nil
}

// authorities reads the certificates of the authorities that sign the certificates of clients. It
// returns nil if o names neither a file nor a directory.
func authorities(o *Options) (*x509.CertPool, error) {
	if o.CAFile == "" && o.CADir == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if o.CAFile != "" {
		content, err := readFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls-ca-cert-file: %w", err)
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("tls-ca-cert-file %s has no certificate", o.CAFile)
		}
	}
	if o.CADir != "" {
		if err := appendDir(pool, o.CADir); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

// appendDir adds the certificates in all files of the directory dir to pool. Files may have any
// name, while OpenSSL requires names that c_rehash makes. It is an error if there is no
// certificate.
func appendDir(pool *x509.CertPool, dir string) error {
	files, err := optionfile.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("tls-ca-cert-dir: %w", err)
	}
	found := false
	for _, path := range files {
		content, err := readFile(path)
		if err != nil {
			return fmt.Errorf("tls-ca-cert-dir: %w", err)
		}
		found = pool.AppendCertsFromPEM(content) || found
	}
	if !found {
		return fmt.Errorf("tls-ca-cert-dir %s has no certificate", dir)
	}
	return nil
}

// maxFile is the maximum size in bytes of a file with certificates or a key. A file with the
// certificates of all public authorities has a quarter of a MiB.
const maxFile = 16 << 20

func readFile(path string) ([]byte, error) { return optionfile.Read(path, maxFile) }
