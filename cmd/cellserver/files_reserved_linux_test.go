//go:build real

package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
)

// TestMaxClientsLeavesFilesForOthers: with few file descriptors, some are reserved for uses other
// than clients: the second descriptors of handshakes, and connections to the admin port.
func TestMaxClientsLeavesFilesForOthers(t *testing.T) {
	pair := certtest.New(t).Issue(t, certtest.Subject{Name: "server"})
	secure := "--tls-port 7001 --tls-cert-file " + pair.CertFile + " --tls-key-file " + pair.KeyFile + " --tls-auth-clients no"
	for flags, want := range map[string]string{
		"":                                "maxclients:468",
		secure + " --io-threads 2":        "maxclients:404",
		secure + " --io-threads 16":       "maxclients:340",
		secure + " --transport goroutine": "maxclients:468",
		"--admin-port 7002":               "maxclients:404",
		"--maxclients 400":                "maxclients:400",
	} {
		args := []string{"-c", `ulimit -n 500; exec "$0" "$@"`, os.Args[0]}
		more := regexp.MustCompile(`\b(tls|admin)-port\b`).FindAllString(flags, -1)
		p := newDaemon(t, exec.Command("sh", append(args, strings.Fields(flags)...)...), more...)
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
