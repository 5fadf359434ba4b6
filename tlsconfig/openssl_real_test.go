//go:build real

package tlsconfig_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/tlsconfig"
)

// TestEncryptedKeys: keys that OpenSSL has encrypted are read with the password.
func TestEncryptedKeys(t *testing.T) {
	programs.Need(t, "openssl")
	for _, rsa := range []bool{false, true} {
		o, _ := options(t, certtest.Subject{Name: "server", RSA: rsa})
		from := o.KeyFile
		o.KeyFile = filepath.Join(t.TempDir(), "key")
		for _, args := range []string{"-v2 aes-256-cbc", "-v2 aes-192-cbc -v2prf hmacWithSHA512", "-v2 des3 -iter 1", "-scrypt", "-v1 PBE-SHA1-3DES"} {
			all := append([]string{"pkcs8", "-topk8", "-in", from, "-out", o.KeyFile, "-passout", "pass:horse"}, strings.Fields(args)...)
			said, err := exec.CommandContext(t.Context(), "openssl", all...).CombinedOutput()
			require.NoError(t, err, "%s", said)
			o.KeyFilePass = ""
			_, err = tlsconfig.Load(o)
			require.ErrorContains(t, err, "set tls-key-file-pass", args)
			o.KeyFilePass = "horse"
			_, err = tlsconfig.Load(o)
			if args == "-scrypt" || strings.HasPrefix(args, "-v1") {
				require.ErrorContains(t, err, "not supported", args)
				continue
			}
			require.NoError(t, err, args)
			o.KeyFilePass = "donkey"
			_, err = tlsconfig.Load(o)
			require.ErrorContains(t, err, "does not fit", args)
		}
	}
}
