package simulation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMutationsApply checks that the lines which each mutation changes are still in the code.
// `make mutants`, which needs some minutes, would otherwise be the first to find out.
func TestMutationsApply(t *testing.T) {
	patches, err := filepath.Glob("mutations/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, patches)
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		require.NoError(t, err)
		code, hunk := "", ""
		check := func() {
			require.Contains(t, code, hunk, patch)
			hunk = ""
		}
		for line := range strings.Lines(string(text)) {
			name, ofFile := strings.CutPrefix(line, "+++ b/")
			switch {
			case ofFile:
				check()
				content, err := os.ReadFile(filepath.Join("../..", strings.TrimSpace(name)))
				require.NoError(t, err, patch)
				code = string(content)
			case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "@@ "):
				check()
			case code != "" && (line[0] == ' ' || line[0] == '-'):
				hunk += line[1:]
			}
		}
		check()
		require.NotEmpty(t, code, "%s changes no file", patch)
	}
}
