//go:build real

package main

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// TestMakeBuildIsStatic: the program of make build needs no library and no loader, so it starts in
// an empty root directory.
func TestMakeBuildIsStatic(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds the program, which is an ELF file on Linux")
	}
	programs.Need(t, "make")
	bin := t.TempDir()
	out, err := exec.Command("make", "-C", "../..", "build", "BIN="+bin).CombinedOutput()
	require.NoError(t, err, "%s", out)
	program, err := elf.Open(filepath.Join(bin, "cellserver"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	for _, part := range program.Progs {
		require.NotEqual(t, elf.PT_INTERP, part.Type, "it asks for a loader")
	}
	out, err = exec.Command(filepath.Join(bin, "cellserver"), "--version").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "cellserver ")
}
