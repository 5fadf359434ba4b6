package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tools on files take their option before and behind the directory, and say how
// they are called where they are called wrongly.
func TestToolsOnFiles(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{dir}, {dir, "--fix"}, {"--fix", dir}} {
		require.ErrorContains(t, checkAOF(args, io.Discard), "holds no cellserver.manifest")
	}
	for _, args := range [][]string{{}, {"--help"}, {"--fix"}, {dir, "--fox"}, {dir, dir}, {dir, "--fix", "--fix"}} {
		require.ErrorContains(t, checkAOF(args, io.Discard), "usage: ")
	}
	for _, tool := range []func([]string, io.Writer) error{checkAOF, dump} { // that of the option dir, too
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "appendonlydir"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonlydir", "cellserver.manifest"), []byte("no manifest"), 0o600))
		require.ErrorContains(t, tool([]string{dir}, io.Discard), filepath.Join("appendonlydir", "cellserver.manifest"))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "appendonlydir")))
	}
	require.ErrorContains(t, dump([]string{dir}, io.Discard), "holds no cellserver.manifest")
	for _, args := range [][]string{{}, {"--help"}, {dir, dir}} {
		require.ErrorContains(t, dump(args, io.Discard), "usage: ")
	}
}
