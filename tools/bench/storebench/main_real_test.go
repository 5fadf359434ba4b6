//go:build real

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// TestBenchStoreMeasures runs the program with the shortest possible turns.
func TestBenchStoreMeasures(t *testing.T) {
	programs.Need(t, "redis-server", "redis-benchmark")
	program, page := filepath.Join(t.TempDir(), "storebench"), filepath.Join(t.TempDir(), "page.md")
	run := func(name string, args ...string) {
		said, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	run("go", "build", "-o", program, ".")
	run(program, "--engine", "redis-server", "--only", "Single", "--rounds", "1", "--warmup", "100ms", "--span", "200ms", "--out", page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "\n## Single calls, 64 callers\n")
	require.Regexp(t, `\n\| redis_rate \| [\d,]+ \(.*\) \| .*\n\| cellserver --store \| [\d,]+ \(`, string(text))
}
