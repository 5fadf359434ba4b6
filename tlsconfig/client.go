package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Client returns a configuration for connections to other servers: it presents the same
// certificate, and requires a certificate of the same authorities, or of those of the system if
// there are none. As in Redis, the name in the certificate is not checked.
func Client(o *Options) (*tls.Config, error) {
	conf, err := Load(o)
	if err != nil {
		return nil, err
	}
	roots := conf.ClientCAs
	conf.ClientAuth, conf.ClientCAs = tls.NoClientCert, nil
	conf.InsecureSkipVerify = true // VerifyConnection verifies all but the name
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the server shows no certificate")
		}
		between := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	return conf, nil
}
