//go:build real && unix

package limit_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testExample runs the program of the README: the 101st request is denied.
func testExample(t *testing.T, p *program) {
	bin := filepath.Join(t.TempDir(), "example")
	out, err := exec.Command("go", "build", "-o", bin, "../example").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "CELLSERVER_URL=unix://"+p.socket, "LISTEN=127.0.0.1:0")
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(said)
	address := ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "listening on ")
	}
	require.NotEmpty(t, address)
	// A reply that is late lets a request pass unseen, so it may take more than one to be denied.
	for range 1000 {
		r, err := http.Get("http://" + address)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		if r.StatusCode == http.StatusTooManyRequests {
			require.NotEmpty(t, r.Header.Get("Retry-After"))
			return
		}
		require.Equal(t, http.StatusOK, r.StatusCode)
	}
	require.Fail(t, "no request was denied")
}
