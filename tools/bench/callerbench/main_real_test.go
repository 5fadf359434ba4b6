//go:build real

package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchCallersMeasures runs the program with the shortest possible turns.
func TestBenchCallersMeasures(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell how much processor time a process uses")
	}
	dir := t.TempDir()
	program, server := filepath.Join(dir, "callerbench"), filepath.Join(dir, "cellserver")
	for _, build := range [][]string{{"build", "-o", program, "."}, {"-C", "../../..", "build", "-o", server, "./cmd/cellserver"}} {
		said, err := exec.Command("go", build...).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	table, err := exec.CommandContext(t.Context(), program, "--server", server, "--rounds", "1", "--warmup", "100ms", "--span", "300ms").Output()
	require.NoError(t, err)
	for _, c := range contenders {
		require.Regexp(t, `(?m)^\| `+c.name+` \| [1-9]`, string(table))
	}
}
