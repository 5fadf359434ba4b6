//go:build real && unix

package activation_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
)

// TestSocketsAreGiven: the program finds the sockets where sd_listen_fds looks, and gets its
// arguments.
func TestSocketsAreGiven(t *testing.T) {
	a, b := activation.Open(t, "port"), activation.Open(t, "admin-port")
	require.NotEqual(t, a.Port(), b.Port())
	cmd := exec.Command("sh", "-c", `[ "$LISTEN_PID" = $$ ] && [ -e /dev/fd/3 ] && [ -e /dev/fd/4 ] && echo "$LISTEN_FDS $LISTEN_FDNAMES $*"`, "sh", "x y", "z")
	activation.Give(cmd, a, b)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, "2 port:admin-port x y z\n", string(said))
}
