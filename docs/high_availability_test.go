package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

const availabilityPage = "high-availability.md"

// replicationOption is a row of options.md about an option of replication that has an effect:
// those that are only accepted have a column less.
var replicationOption = regexp.MustCompile("(?m)^\\| `((?:repl|master|min-replicas|tls-replication)[a-z-]*)`[^|]*\\|[^|]*\\|[^|]*\\|[^|\n]+\\|$")

// TestHighAvailabilityListsEveryOption: all options of replication, with the defaults that they have.
func TestHighAvailabilityListsEveryOption(t *testing.T) {
	page, err := os.ReadFile(availabilityPage)
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Options\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\nAll but")
	shown := map[string]string{}
	for _, row := range storeOption.FindAllStringSubmatch(table, -1) {
		shown[row[1]] = row[2]
	}
	require.NotEmpty(t, shown)
	for name, value := range shown {
		pair := config.Default().Get(func(n string) bool { return n == name })
		require.Len(t, pair, 1, name)
		require.Equal(t, pair[0][1], value, name)
	}
	options, err := os.ReadFile("options.md")
	require.NoError(t, err)
	all := replicationOption.FindAllStringSubmatch(string(options), -1)
	require.Len(t, all, len(shown), "the options of replication: %v", all)
	for _, o := range all {
		require.Contains(t, shown, o[1])
	}
}
