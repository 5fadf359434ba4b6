//go:build real

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRehearsal runs the tests of the rehearsal, which is a module of its own: they show that
// a command and a limiter family can be added without a change to this module. It needs the
// modules that this one needs, and no others.
func TestRehearsal(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling another module is left to the full test run")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	requirements, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	own := strings.Replace(string(requirements), "module github.com/cellserver/cellserver\n", "module example.com/extension\n", 1) +
		"require github.com/cellserver/cellserver v0.0.0\n" +
		"replace github.com/cellserver/cellserver => \"" + filepath.ToSlash(root) + "\"\n"
	modules := filepath.Join(t.TempDir(), "go.mod")
	require.NoError(t, os.WriteFile(modules, []byte(own), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(modules, "mod")+"sum", sums, 0o600))
	for _, arguments := range [][]string{{"vet"}, {"test", "-count=1"}} {
		command := exec.Command("go", append(arguments, "-modfile", modules, "./...")...)
		command.Dir = rehearsal
		command.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
}
