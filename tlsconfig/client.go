package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Client returns the configuration for connections to other servers with the settings o. This side
// presents the certificate of the server. The other side must present a certificate that an
// authority in o has signed, or, without authorities in o, one of the system's. As in Redis, the
// name in the certificate is not checked. It returns the errors of [Load].
func Client(o *Options) (*tls.Config, error) {
	conf, err := Load(o)
	if err != nil {
		return nil, err
	}
	roots := conf.ClientCAs
	conf.ClientAuth, conf.ClientCAs = tls.NoClientCert, nil
	conf.InsecureSkipVerify = true // VerifyConnection verifies the certificate, except for its name
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
