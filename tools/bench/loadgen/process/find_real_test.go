//go:build real

package process_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

func TestFindReturnsTheProcessThatListens(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell")
	}
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "tcp6": "[::]:0", "unix": filepath.Join(t.TempDir(), "s")} {
		l, err := net.Listen(network, address)
		if network == "tcp6" && err != nil {
			continue // a machine without IPv6
		}
		require.NoError(t, err)
		defer l.Close()
		conn, err := net.Dial(l.Addr().Network(), l.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		pid, err := process.Find(conn.RemoteAddr())
		require.NoError(t, err, network)
		require.Equal(t, os.Getpid(), pid, network)
	}
}
