//go:build real

package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/freeport"
)

// TestMaxClientsLeavesFilesForOthers: where few files may be open, what is not a client has its
// share: the second descriptors of handshakes, and connections to the admin port.
func TestMaxClientsLeavesFilesForOthers(t *testing.T) {
	pair := certtest.New(t).Issue(t, certtest.Subject{Name: "server"})
	secure := "--tls-port " + freeport.Choose() + " --tls-cert-file " + pair.CertFile + " --tls-key-file " + pair.KeyFile + " --tls-auth-clients no"
	for flags, want := range map[string]string{
		"":                                  "maxclients:468",
		secure + " --io-threads 2":          "maxclients:404",
		secure + " --io-threads 16":         "maxclients:340",
		secure + " --transport goroutine":   "maxclients:468",
		"--admin-port " + freeport.Choose(): "maxclients:404",
		"--maxclients 400":                  "maxclients:400",
	} {
		port := freeport.Choose()
		p := &daemon{t: t, addr: net.JoinHostPort("127.0.0.1", port), log: &syncBuffer{}, ended: make(chan struct{})}
		args := []string{"-c", `ulimit -n 500; exec "$0" "$@"`, os.Args[0], "--port", port, "--bind", "127.0.0.1"}
		p.Cmd = exec.Command("sh", append(args, strings.Fields(flags)...)...)
		p.Env, p.Stderr = append(os.Environ(), asServer+"=1"), p.log
		p.start()
		c, _ := p.dial()
		_, err := io.WriteString(c, "INFO clients\r\nQUIT\r\n")
		require.NoError(t, err)
		said, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(said), "\r\n"+want+"\r\n", flags)
		require.NoError(t, p.Process.Kill())
		<-p.ended
	}
}
