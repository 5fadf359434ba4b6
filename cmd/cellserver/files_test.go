package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestToolsOnFiles: the tools accept their option before and after the directory, and print their
// usage for a wrong command line.
func TestToolsOnFiles(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{dir}, {dir, "--fix"}, {"--fix", dir}} {
		require.ErrorContains(t, checkAOF(args, io.Discard), "holds no cellserver.manifest")
	}
	for _, args := range [][]string{{}, {"--help"}, {"--fix"}, {dir, "--fox"}, {dir, dir}, {dir, "--fix", "--fix"}} {
		require.ErrorContains(t, checkAOF(args, io.Discard), "usage: ")
	}
	for _, tool := range []func([]string, io.Writer) error{checkAOF, dump} { // the value of the option dir works, too
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "appendonlydir"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonlydir", "cellserver.manifest"), []byte("no manifest"), 0o600))
		require.ErrorContains(t, tool([]string{dir}, io.Discard), filepath.Join("appendonlydir", "cellserver.manifest"))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "appendonlydir")))
	}
	require.ErrorContains(t, dump([]string{dir}, io.Discard), "holds no cellserver.manifest")
	require.ErrorContains(t, restore([]string{dir, dir + "2"}, io.Discard), "the backup: "+dir+" holds no cellserver.manifest")
	for _, args := range [][]string{{}, {dir}, {dir, dir, dir}} {
		require.ErrorContains(t, restore(args, io.Discard), "usage: ")
	}
	for _, args := range [][]string{{}, {"--help"}, {dir, dir}} {
		require.ErrorContains(t, dump(args, io.Discard), "usage: ")
	}
}

// TestRestoreOfRecordedFiles: the backup may be given by its own directory or by that of the option
// dir, and the tool prints what to do next.
func TestRestoreOfRecordedFiles(t *testing.T) {
	backup := t.TempDir()
	recorded := filepath.Join("..", "..", "compat_test", "testdata", "files", "2026-11-26-192925e9")
	require.NoError(t, os.CopyFS(filepath.Join(backup, "appendonlydir"), os.DirFS(recorded)))
	to := filepath.Join(t.TempDir(), "appendonlydir")
	var out strings.Builder
	require.NoError(t, restore([]string{backup, to}, &out))
	require.Contains(t, out.String(), "the log is whole")
	require.Contains(t, out.String(), to+": restored.")
	require.Contains(t, out.String(), "SENTINEL FAILOVER")
	out.Reset()
	require.NoError(t, checkAOF([]string{to}, &out))
	require.ErrorContains(t, restore([]string{backup, to}, io.Discard), "move the files of the server to another directory first")
}
