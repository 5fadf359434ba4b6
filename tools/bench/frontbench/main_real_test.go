//go:build real

package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchFrontsMeasures runs the program with the shortest possible turns, without ratelimit, which no registry of programs has.
func TestBenchFrontsMeasures(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell how much processor time a process uses")
	}
	dir := t.TempDir()
	program, server := filepath.Join(dir, "frontbench"), filepath.Join(dir, "cellserver")
	for _, build := range [][]string{{"build", "-o", program, "."}, {"-C", "../../..", "build", "-o", server, "./cmd/cellserver"}} {
		said, err := exec.Command("go", build...).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	tables, err := exec.CommandContext(t.Context(), program, "--server", server, "--rounds", "1", "--warmup", "100ms", "--span", "300ms").Output()
	require.NoError(t, err)
	for _, row := range []string{"empty handler", "rls-port", "POST /json", "POST /v1/use", "GET /v1/check"} {
		require.Regexp(t, `(?m)^\| `+row+` \| [1-9]`, string(tables))
	}
}
