//go:build real

package server_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
)

// TestTLSKeyWithPassword: encrypted keys as OpenSSL writes them are read with the password. Only
// users with the permission to change options see the password, and no log contains it.
func TestTLSKeyWithPassword(t *testing.T) {
	s := startTLS(t, "auto")
	admin := s.dial(s.authority.Client())
	programs.Need(t, "openssl")
	for name, args := range map[string][]string{
		"aes256":   {"pkcs8", "-topk8", "-v2", "aes-256-cbc"},
		"aes128":   {"pkcs8", "-topk8", "-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1"},
		"des3":     {"pkcs8", "-topk8", "-v2", "des3", "-v2prf", "hmacWithSHA512"},
		"older":    {"ec", "-aes256"},
		"older192": {"ec", "-aes192"},
	} {
		file := filepath.Join(t.TempDir(), name)
		args = append(args, "-in", s.pair.KeyFile, "-out", file, "-passout", "pass:horse-canary")
		out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, admin.Do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", ""), "set tls-key-file-pass", name)
		require.Contains(t, admin.Do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", "donkey"), "does not fit", name)
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", "horse-canary"), name)
		require.True(t, s.served(s.authority.Client()))
	}
	require.NotContains(t, s.log.String(), "horse-canary")
	file := filepath.Join(t.TempDir(), "scrypt")
	out, err := exec.CommandContext(t.Context(), "openssl", "pkcs8", "-topk8", "-scrypt", "-in", s.pair.KeyFile, "-out", file, "-passout", "pass:p").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, admin.Do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", "p"), "not supported")
}
