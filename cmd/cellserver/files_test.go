package main

import (
	"io"
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
	require.ErrorContains(t, dump([]string{dir}, io.Discard), "holds no cellserver.manifest")
	for _, args := range [][]string{{}, {"--help"}, {dir, dir}} {
		require.ErrorContains(t, dump(args, io.Discard), "usage: ")
	}
}
