package tlsconfig_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/tlsconfig"
)

// FuzzCiphers: any list is either refused, or yields supported suites, none of them twice and
// none that the list forbids.
func FuzzCiphers(f *testing.F) {
	for _, list := range []string{"", "DEFAULT:!ECDHE-RSA-AES128-SHA", "ALL:-ALL", "+HIGH @STRENGTH", "!", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,x"} {
		f.Add(list)
	}
	a := certtest.New(f)
	pair := a.Issue(f, certtest.Subject{Name: "server"})
	var known []uint16
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if strings.HasPrefix(s.Name, "TLS_ECDHE_") && !strings.Contains(s.Name, "RC4") && !strings.Contains(s.Name, "3DES") {
			known = append(known, s.ID)
		}
	}
	f.Fuzz(func(t *testing.T, list string) {
		words := tlsconfig.SplitCiphers(list)
		conf, err := tlsconfig.Load(&tlsconfig.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile, AuthClients: tlsconfig.Ignore, Ciphers: words})
		require.Equal(t, err == nil, tlsconfig.CheckCiphers(words) == nil)
		if err != nil {
			return
		}
		require.NotEmpty(t, conf.CipherSuites)
		require.Subset(t, known, conf.CipherSuites)
		sorted := slices.Sorted(slices.Values(conf.CipherSuites))
		require.Len(t, slices.Compact(slices.Clone(sorted)), len(sorted))
		for _, w := range words {
			for _, id := range conf.CipherSuites {
				require.NotEqual(t, w, "!"+tls.CipherSuiteName(id))
			}
		}
	})
}

// FuzzFiles: any contents of the files of certificate, key and authority are either refused, or
// yield a certificate with its key.
func FuzzFiles(f *testing.F) {
	a := certtest.New(f)
	read := func(path string) []byte {
		content, err := os.ReadFile(path)
		require.NoError(f, err)
		return content
	}
	for _, rsa := range []bool{false, true} {
		pair := a.Issue(f, certtest.Subject{Name: "server", RSA: rsa})
		f.Add(read(pair.CertFile), read(pair.KeyFile), read(a.File), "")
	}
	f.Fuzz(func(t *testing.T, cert, key, ca []byte, password string) {
		dir := t.TempDir()
		o := &tlsconfig.Options{
			CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"), CAFile: filepath.Join(dir, "ca"),
			KeyFilePass: password, AuthClients: tlsconfig.Require,
		}
		for path, content := range map[string][]byte{o.CertFile: cert, o.KeyFile: key, o.CAFile: ca} {
			require.NoError(t, os.WriteFile(path, content, 0o600))
		}
		conf, err := tlsconfig.Load(o)
		if err != nil {
			require.Nil(t, conf)
			return
		}
		require.NotNil(t, conf.Certificates[0].Leaf)
		require.NotNil(t, conf.Certificates[0].PrivateKey)
		require.Equal(t, tls.RequireAndVerifyClientCert, conf.ClientAuth)
	})
}
