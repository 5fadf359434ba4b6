//go:build real && linux

package server_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestServerWithoutDescriptors runs the server with 64 file descriptors. It refuses clients that it
// cannot serve, and serves the connected ones.
func TestServerWithoutDescriptors(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		addr := startLimited(t, kind, 64)
		witness := inproc.Dial(t, "tcp", addr)
		require.Equal(t, "+PONG\r\n", witness.Do("PING"))
		conns := make([]net.Conn, 0, 300)
		for range cap(conns) {
			c, err := net.DialTimeout("tcp", addr, inproc.Patience)
			require.NoError(t, err)
			conns = append(conns, c)
		}
		for range 100 {
			require.Equal(t, "+PONG\r\n", witness.Do("PING"))
		}
		for _, c := range conns {
			require.NoError(t, c.Close())
		}
		inproc.Await(t, "there is room again", func() bool {
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(inproc.Patience)))
			_, _ = c.Write([]byte("PING\r\n")) // a refusal may have closed it already
			answer := make([]byte, 7)
			n, _ := c.Read(answer)
			return string(answer[:n]) == "+PONG\r\n"
		})
	})
}

// startLimited starts the program with that number of file descriptors.
func startLimited(t *testing.T, kind string, files int) (addr string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "cellserver")
	out, err := exec.Command("go", "build", "-o", bin, "../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", out)
	socket := activation.Open(t, "port")
	cmd := exec.Command("sh", "-c", "ulimit -n "+strconv.Itoa(files)+`; exec "$0" "$@"`,
		bin, "--transport", kind, "--io-threads", "1")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	activation.Give(cmd, socket)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	return socket.Addr
}
