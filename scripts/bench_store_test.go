//go:build real

package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// TestBenchStoreMeasures builds the module of the program, which nothing else does, and has
// it take the shortest of looks.
func TestBenchStoreMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("a module of its own is left to the full test run")
	}
	programs.Need(t, "redis-server", "redis-benchmark")
	program, page := filepath.Join(t.TempDir(), "storebench"), filepath.Join(t.TempDir(), "page.md")
	run := func(dir, name string, args ...string) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	run("../internal/storebench", "go", "build", "-o", program, ".")
	run(".", program, "--engine", "redis-server", "--only", "Single", "--rounds", "1", "--warmup", "100ms", "--span", "200ms", "--out", page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "\n## Single calls, 64 callers\n")
	require.Regexp(t, `\n\| redis_rate \| [\d,]+ \(.*\) \| .*\n\| cellserver --store \| [\d,]+ \(`, string(text))
}
