// Package tlsconfig makes the configuration of TLS from what an operator names: files with
// certificates and keys, versions, cipher suites. [Load] reads and checks all of it, so
// that a mistake changes nothing that is in force. What is configured, and who uses it, is
// not here.
package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/optionfile"
)

// ClientAuth says whether clients have to show a certificate.
type ClientAuth string

// The values of [Options.AuthClients].
const (
	Require ClientAuth = "yes"
	Ignore  ClientAuth = "no"
	Accept  ClientAuth = "optional" // one that is shown has to be right
)

// Options are what an operator says about TLS.
type Options struct {
	CertFile    string // certificate of the server, with those between it and the authority
	KeyFile     string // its key
	KeyFilePass string // password of the key, "" for none
	CAFile      string // certificates of the authorities that sign those of clients
	CADir       string // a directory of such files
	AuthClients ClientAuth
	Protocols   []string // such as TLSv1.3; none is 1.2 and 1.3
	Ciphers     []string // cipher suites of TLS 1.2 in the names of OpenSSL or of the standard
	Tickets     bool     // whether clients may resume sessions
}

// Load returns the configuration that o describes. Its keys for tickets are its own, so
// that no ticket of another configuration is of use with it.
func Load(o *Options) (*tls.Config, error) {
	conf := &tls.Config{
		// Short records first would cost more than they save: replies are small.
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

// clientAuth returns what crypto/tls calls o.AuthClients.
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

// keyPair reads the certificate of the server and its key.
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

// authorities reads the certificates of those who sign the certificates of clients, nil
// without any file.
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

// appendDir adds the certificates of all files in dir. OpenSSL looks for names that are
// made of a hash (c_rehash); here any name will do.
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

// maxFile is how long a file of certificates may be: a bundle of all public authorities
// has a quarter of a MiB.
const maxFile = 16 << 20

func readFile(path string) ([]byte, error) { return optionfile.Read(path, maxFile) }
