//go:build real

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/programs"
)

const policiesPage = "policies.md"

// TestPoliciesInARepository types what the page shows at a shell beside a server that reads the
// file of the page, and wants to see what the page shows. The folder stands for /etc/cellserver.
func TestPoliciesInARepository(t *testing.T) {
	if testing.Short() {
		t.Skip("the program is left to the full test run")
	}
	client := programs.Find(t, "redis-cli")
	dir, socket := t.TempDir(), activation.Open(t, "port")
	port := socket.Port()
	program := filepath.Join(dir, "cellserver")
	said, err := exec.Command("go", "build", "-o", program, "../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", said)
	written(t, dir, "policies.yaml", pageBlocks(t, policiesPage, "yaml", 1)[0])
	cli := written(t, dir, "redis-cli", "#!/bin/bash\nexec "+client+" --no-raw -p "+port+" \"$@\"\n")
	require.NoError(t, os.Chmod(cli, 0o700))
	server := exec.Command(program, "--dir", dir, "--policy-file", "policies.yaml")
	server.Dir = dir
	activation.Give(server, socket)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, server.Process.Signal(os.Interrupt))
		_ = server.Wait()
	})
	callPolicies(t, socket.Addr)
	for _, block := range pageBlocks(t, policiesPage, "console", 3) {
		got := ""
		for line := range strings.Lines(block) {
			if command, is := strings.CutPrefix(line, "$ "); is {
				shell := exec.Command("bash", "-c", strings.ReplaceAll(command, "6379", port)+"\ntrue")
				shell.Dir, shell.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
				said, err := shell.CombinedOutput()
				require.NoError(t, err)
				got += strings.TrimSuffix(line, "\n") + "\n" + strings.ReplaceAll(string(said), dir, "/etc/cellserver")
			}
		}
		require.Equal(t, block+"\n", got)
	}
}

// callPolicies waits for the server, and makes calls about keys of two customers of the free plan
// and one of the paid plan.
func callPolicies(t *testing.T, addr string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	require.Eventually(t, func() bool { return c.Ping(t.Context()).Err() == nil }, patience, 10*time.Millisecond)
	for _, key := range []string{"acme", "free-1", "free-2"} {
		require.NoError(t, c.Do(t.Context(), "RL.USE", "api", key).Err())
	}
}
