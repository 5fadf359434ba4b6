package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGatewaysShowTheirFiles: the files on the page are those that the tests give to the gateways, whole.
func TestGatewaysShowTheirFiles(t *testing.T) {
	files, err := filepath.Glob("../examples/gateways/*")
	require.NoError(t, err)
	shown := shownPrograms(t, "gateways.md")
	require.Len(t, shown, len(files))
	for _, p := range shown {
		text, err := os.ReadFile(filepath.Join("..", p.file))
		require.NoError(t, err)
		require.Equal(t, []string{string(text)}, p.excerpts, p.file)
	}
}
