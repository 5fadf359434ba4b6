//go:build real

package server_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
)

// eachRealKey runs test against a server with an ECDSA key, and with an RSA key.
func eachRealKey(t *testing.T, test func(t *testing.T, s *tlsServer, key string)) {
	for _, key := range []string{"ECDSA", "RSA"} {
		t.Run(key, func(t *testing.T) {
			s := startTLS(t, "auto")
			pair := s.authority.Issue(t, certtest.Subject{Name: "server", RSA: key == "RSA"})
			require.Equal(t, inproc.OK, inproc.Dial(t, "tcp", s.plain).Do("CONFIG", "SET", "tls-cert-file", pair.CertFile, "tls-key-file", pair.KeyFile))
			test(t, s, key)
		})
	}
}

// scanned returns the cipher suites that openssl and a server agree on: each chosen suite is
// removed from the next attempt, until none is left.
func (s *tlsServer) scanned(version, option, suites string) (chosen []string) {
	s.t.Helper()
	left := strings.Split(suites, ":")
	for len(left) > 0 {
		ctx, cancel := context.WithTimeout(s.t.Context(), inproc.Patience)
		cmd := exec.CommandContext(ctx, "openssl", "s_client", "-connect", s.secure, version, option, strings.Join(left, ":"), "-brief")
		said, _ := cmd.CombinedOutput() // it fails if there is no agreement
		cancel()
		_, suite, agreed := strings.Cut(string(said), "Ciphersuite: ")
		if !agreed {
			return chosen
		}
		suite, _, _ = strings.Cut(suite, "\n")
		require.Contains(s.t, left, suite)
		chosen = append(chosen, suite)
		left = slices.DeleteFunc(left, func(l string) bool { return l == suite })
	}
	return chosen
}

// TestTLSScanOfOpenSSL: another library finds the same versions and cipher suites, and no others.
func TestTLSScanOfOpenSSL(t *testing.T) {
	programs.Need(t, "openssl")
	out, err := exec.CommandContext(t.Context(), "openssl", "ciphers", "ALL:COMPLEMENTOFALL:@SECLEVEL=0").Output()
	require.NoError(t, err)
	all := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), ":"), func(name string) bool { return strings.HasPrefix(name, "TLS_") })
	require.Greater(t, len(all), 50)
	eachRealKey(t, func(t *testing.T, s *tlsServer, key string) {
		for _, old := range []string{"-tls1", "-tls1_1"} {
			require.Empty(t, s.scanned(old, "-cipher", strings.Join(all, ":")+":@SECLEVEL=0"), old)
		}
		require.ElementsMatch(t, []string{
			"ECDHE-" + key + "-AES128-GCM-SHA256", "ECDHE-" + key + "-AES256-GCM-SHA384", "ECDHE-" + key + "-CHACHA20-POLY1305",
		}, s.scanned("-tls1_2", "-cipher", strings.Join(all, ":")))
		require.ElementsMatch(t, []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"},
			s.scanned("-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_128_CCM_8_SHA256"))
	})
}
