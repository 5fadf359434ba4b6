package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
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
	require.ErrorContains(t, restore([]string{dir, dir + "2"}, io.Discard), "the backup: "+dir+" holds no cellserver.manifest")
	for _, args := range [][]string{{}, {dir}, {dir, dir, dir}} {
		require.ErrorContains(t, restore(args, io.Discard), "usage: ")
	}
	for _, args := range [][]string{{}, {"--help"}, {dir, dir}} {
		require.ErrorContains(t, dump(args, io.Discard), "usage: ")
	}
}

// TestRestoreOfRecordedFiles: the backup may be named by its directory or by the option dir's, and what
// to do next is said.
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
