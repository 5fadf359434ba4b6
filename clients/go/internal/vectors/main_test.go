package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesAreFresh compares the files with what make generate would write.
func TestFilesAreFresh(t *testing.T) {
	made, err := files()
	require.NoError(t, err)
	for _, f := range made {
		want, err := f.text()
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "vectors", f.name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is stale: run make generate", f.name)
	}
}
