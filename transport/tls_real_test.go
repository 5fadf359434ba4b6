//go:build real

package transport_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// TestTLSKeyUpdate: a client may request new keys at any time, as openssl can.
func TestTLSKeyUpdate(t *testing.T) {
	programs.Need(t, "openssl")
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) {
			r := transporttest.Start(t, transporttest.Secured(t, f, tls.VersionTLS13), transporttest.NewLineHandler(), transporttest.PatientLimits())
			cmd := exec.CommandContext(t.Context(), "openssl", "s_client", "-connect", r.Addr.String(), "-tls1_3")
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			cmd.Stderr = cmd.Stdout
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			await := func(want string) {
				t.Helper()
				for lines.Scan() {
					if lines.Text() == want {
						return
					}
				}
				t.Fatal("openssl ended before it wrote ", want)
			}
			for _, n := range []string{"1", "2", "3"} {
				_, err := io.WriteString(in, "echo answer "+n+"\n")
				require.NoError(t, err)
				await("answer " + n)
				_, err = io.WriteString(in, "K\n")
				require.NoError(t, err)
				await("KEYUPDATE")
			}
			_, err = io.WriteString(in, "echo last\n")
			require.NoError(t, err)
			await("last")
			require.NoError(t, in.Close())
			_ = cmd.Wait() // it may end with an error
		})
	}
}
