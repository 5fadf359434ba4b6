package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecipesSendTheHeadersOfTheServer: what the programs of the API quota print is what the server's own HTTP port
// answers, by the vectors that the packages for callers are tested with.
func TestRecipesSendTheHeadersOfTheServer(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "clients", "vectors", "headers.json"))
	require.NoError(t, err)
	var file struct {
		Vectors []struct {
			Name    string
			Status  int
			Headers map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	page, err := os.ReadFile("recipes.md")
	require.NoError(t, err)
	found := 0
	for _, v := range file.Vectors {
		if !strings.HasPrefix(v.Name, "docs/recipes.md: ") {
			continue
		}
		found++
		retry := v.Headers["Retry-After"]
		if retry == "" {
			retry = "-"
		}
		require.Contains(t, string(page), fmt.Sprintf(" %d %s %s\n", v.Status, v.Headers["RateLimit"], retry), v.Name)
	}
	require.Equal(t, 3, found)
}
