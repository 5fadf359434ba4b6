// Package tlsconfig makes a TLS configuration from the settings of an operator. These are files
// with certificates and keys, versions and cipher suites. [Load] reads and checks all of it, so
// that a mistake does not change the configuration in use. The package neither stores nor uses a
// configuration.
package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/optionfile"
)

// ClientAuth says whether clients have to present a certificate.
type ClientAuth string

// The values of [Options.AuthClients].
const (
	Require ClientAuth = "yes"
	Ignore  ClientAuth = "no"
	Accept  ClientAuth = "optional" // a certificate that is presented must be valid
)

// Options are an operator's settings for TLS.
type Options struct {
	CertFile    string // certificate of the server, with intermediate certificates
	KeyFile     string // its key
	KeyFilePass string // password of the key, "" for none
	CAFile      string // certificates of the authorities that sign those of clients
	CADir       string // a directory of such files
	AuthClients ClientAuth
	Protocols   []string // such as TLSv1.3; without any, TLS 1.2 and 1.3
	Ciphers     []string // cipher suites of TLS 1.2 in the names of OpenSSL or of the standard
	Tickets     bool     // whether clients may resume sessions
}

// Load returns the configuration for o. It has ticket keys of its own, so that tickets of another
// configuration are not valid for it.
func Load(o *Options) (*tls.Config, error) {
	conf := &tls.Config{
		// Short records at first would cost more than they save: replies are small.
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

// clientAuth returns the value of crypto/tls for o.AuthClients.
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

// authorities reads the certificates of the authorities that sign those of clients; nil without any
// file.
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

// appendDir adds the certificates of all files in dir. OpenSSL requires names made from a hash
// (c_rehash); here any name is accepted.
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

// maxFile is the maximum size of a file of certificates: a bundle of all public authorities has a
// quarter of a MiB.
const maxFile = 16 << 20

func readFile(path string) ([]byte, error) { return optionfile.Read(path, maxFile) }
