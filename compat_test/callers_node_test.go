//go:build real

package compat_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
)

// TestNodePackage compiles clients/node and runs its tests, of which some start servers. Then the package is packed and
// installed into an empty project, in which programs that use its types compile and the first example of its README runs.
func TestNodePackage(t *testing.T) {
	if testing.Short() {
		t.Skip("the packages for callers are left to the full test run")
	}
	dir := filepath.Join("..", "clients", "node")
	needs(t, "Node package", dir, []string{"node", "npm"}, filepath.Join("node_modules", ".installed"), []string{"install.sh", "package.json", "package-lock.json"})
	server, err := process.Command("..", t.TempDir())
	require.NoError(t, err)

	for _, script := range []string{"test", "packed"} {
		t.Run(script, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "npm", "run", "--silent", script)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "CELL_SERVER_CMD="+strings.Join(server, " "))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}
