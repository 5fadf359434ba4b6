package tlsconfig_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/tlsconfig"
)

// options returns the options of a server with a certificate that does not request client
// certificates.
func options(t *testing.T, s certtest.Subject) (o *tlsconfig.Options, a *certtest.Authority) {
	t.Helper()
	a = certtest.New(t)
	pair := a.Issue(t, s)
	return &tlsconfig.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile, AuthClients: tlsconfig.Ignore, Tickets: true}, a
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestLoad checks what each option means in crypto/tls.
func TestLoad(t *testing.T) {
	for _, rsa := range []bool{false, true} {
		o, a := options(t, certtest.Subject{Name: "server", RSA: rsa})
		conf, err := tlsconfig.Load(o)
		require.NoError(t, err)
		require.EqualValues(t, tls.VersionTLS12, conf.MinVersion)
		require.EqualValues(t, tls.VersionTLS13, conf.MaxVersion)
		require.Equal(t, tls.NoClientCert, conf.ClientAuth)
		require.Nil(t, conf.ClientCAs)
		require.False(t, conf.SessionTicketsDisabled)
		require.True(t, conf.DynamicRecordSizingDisabled)
		require.Equal(t, "server", conf.Certificates[0].Leaf.Subject.CommonName)
		for _, id := range conf.CipherSuites {
			require.NotContains(t, tls.CipherSuiteName(id), "CBC")
		}

		o.Tickets, o.Protocols, o.Ciphers = false, []string{"TLSv1.2"}, []string{"ECDHE-RSA-AES128-GCM-SHA256"}
		o.AuthClients, o.CAFile = tlsconfig.Accept, a.File
		conf, err = tlsconfig.Load(o)
		require.NoError(t, err)
		require.EqualValues(t, tls.VersionTLS12, conf.MaxVersion)
		require.Equal(t, tls.VerifyClientCertIfGiven, conf.ClientAuth)
		require.NotNil(t, conf.ClientCAs)
		require.True(t, conf.SessionTicketsDisabled)
		require.Equal(t, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, conf.CipherSuites)

		o.AuthClients, o.CAFile, o.CADir = tlsconfig.Require, "", filepath.Dir(a.File)
		require.NoError(t, os.WriteFile(filepath.Join(o.CADir, "README"), []byte("no certificate"), 0o600))
		require.NoError(t, os.Mkdir(filepath.Join(o.CADir, "more"), 0o700))
		conf, err = tlsconfig.Load(o)
		require.NoError(t, err)
		require.Equal(t, tls.RequireAndVerifyClientCert, conf.ClientAuth)
	}
}

// TestLoadTellsEveryFault: the error has every fault with its option, and never the password.
func TestLoadTellsEveryFault(t *testing.T) {
	right, a := options(t, certtest.Subject{Name: "server"})
	other := a.Issue(t, certtest.Subject{Name: "other"})
	empty := t.TempDir()
	for want, change := range map[string]func(o *tlsconfig.Options){
		"no tls-cert-file configured":                    func(o *tlsconfig.Options) { o.CertFile = "" },
		"no tls-key-file configured":                     func(o *tlsconfig.Options) { o.KeyFile = "" },
		"tls-cert-file: open /no/such: ":                 func(o *tlsconfig.Options) { o.CertFile = "/no/such" },
		"tls-key-file: open /no/such: ":                  func(o *tlsconfig.Options) { o.KeyFile = "/no/such" },
		"private key does not match":                     func(o *tlsconfig.Options) { o.KeyFile = other.KeyFile },
		"failed to find any PEM data in certificate":     func(o *tlsconfig.Options) { o.CertFile = file(t, "x") },
		"failed to find any PEM data in key":             func(o *tlsconfig.Options) { o.KeyFile = file(t, "") },
		"either tls-ca-cert-file or tls-ca-cert-dir":     func(o *tlsconfig.Options) { o.AuthClients = tlsconfig.Require },
		"tls-ca-cert-file: open /no/such: ":              func(o *tlsconfig.Options) { o.CAFile = "/no/such" },
		" has no certificate":                            func(o *tlsconfig.Options) { o.CAFile = right.KeyFile },
		"tls-ca-cert-dir: open /no/such: ":               func(o *tlsconfig.Options) { o.CADir = "/no/such" },
		"tls-ca-cert-dir " + empty + " has no certifi":   func(o *tlsconfig.Options) { o.CADir = empty },
		"TLSv1.1 is not secure":                          func(o *tlsconfig.Options) { o.Protocols = []string{"TLSv1.1", "TLSv1.3"} },
		`"SSLv3" is none of`:                             func(o *tlsconfig.Options) { o.Protocols = []string{"SSLv3"} },
		"tls-ciphers selects none":                       func(o *tlsconfig.Options) { o.Ciphers = []string{"RC4-MD5"} },
		"no tls-cert-file configured\ntls-ca-cert-dir: ": func(o *tlsconfig.Options) { o.CertFile, o.CADir = "", "/no/such" },
	} {
		o := *right
		o.KeyFilePass = "canary"
		change(&o)
		conf, err := tlsconfig.Load(&o)
		require.Nil(t, conf)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
}

// TestSuites checks cipher lists of OpenSSL, also with unknown names, and the standard names.
func TestSuites(t *testing.T) {
	o, _ := options(t, certtest.Subject{Name: "server"})
	for list, want := range map[string]int{
		"":                 6,
		"DEFAULT":          6,
		"high:!aNULL:!MD5": 6,
		"ALL:-ECDHE-RSA-AES128-GCM-SHA256:@STRENGTH":    5,
		"!ECDHE-RSA-AES128-GCM-SHA256:ALL":              5,
		"ECDHE-RSA-AES128-SHA,ECDHE-RSA-AES256-SHA RC4": 2,
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256":         1,
		"ECDHE-RSA-AES128-SHA:ECDHE-RSA-AES128-SHA":     1,
	} {
		o.Ciphers = tlsconfig.SplitCiphers(list)
		conf, err := tlsconfig.Load(o)
		require.NoError(t, err, list)
		require.Len(t, conf.CipherSuites, want, list)
	}
	for _, list := range []string{"!ALL", "@SECLEVEL=2", "NULL", "ALL:!ALL", "-ALL", "+", "!", "eNULL:EXPORT:3DES:RC4"} {
		require.ErrorContains(t, tlsconfig.CheckCiphers(tlsconfig.SplitCiphers(list)), "selects none", list)
	}
}
