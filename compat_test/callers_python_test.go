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

// TestPythonPackage runs the tests and checks of clients/python, whose install.sh puts what they need into an
// environment. One part of the tests starts servers itself. Then the package is built, and its wheel installed
// into an empty environment, in which the examples of its README run.
func TestPythonPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("the packages for callers are left to the full test run")
	}
	dir := filepath.Join("..", "clients", "python")
	needs(t, "Python package", dir, []string{"python3"}, filepath.Join(".venv", ".installed"), []string{"install.sh", "requirements.txt"})
	server, err := process.Command("..", t.TempDir())
	require.NoError(t, err)

	for _, check := range []struct {
		name string
		args []string
	}{
		{"types", []string{"-m", "mypy"}},
		{"style", []string{"-m", "ruff", "check"}},
		{"format", []string{"-m", "ruff", "format", "--check"}},
		{"tests", []string{"-m", "pytest", "-p", "no:cacheprovider"}},
		{"package", []string{filepath.Join("tests", "check_package.py"), filepath.Join(".venv", "wheels")}},
	} {
		t.Run(check.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(".venv", "bin", "python"), check.args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "CELL_SERVER_CMD="+strings.Join(server, " "), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}
