package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
)

// scaleOut returns the text of the page.
func scaleOut(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("scale-out.md")
	require.NoError(t, err)
	return string(page)
}

// storeOption is a row of the table of options: its name, and its default.
var storeOption = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (?:`(.*)`)? ?\\| ")

// TestScaleOutListsEveryOption: all options of a store, with the defaults that they have.
func TestScaleOutListsEveryOption(t *testing.T) {
	_, table, found := strings.Cut(scaleOut(t), "\n## Options\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n`store` takes a URL")
	shown := map[string]string{}
	for _, row := range storeOption.FindAllStringSubmatch(table, -1) {
		c, err := config.Load([]string{"--" + row[1] + "=" + row[2]}, nil)
		require.NoError(t, err, row[1])
		shown[row[1]] = c.Get(func(name string) bool { return name == row[1] })[0][1]
	}
	defaults := map[string]string{}
	for _, pair := range config.Default().Get(func(name string) bool {
		return strings.HasPrefix(name, "store") || strings.HasPrefix(name, "hot-") ||
			name == "fail-policy" || name == "ready-without-store" || name == "denial-cache" || name == "multi-across-slots"
	}) {
		defaults[pair[0]] = pair[1]
	}
	require.Equal(t, defaults, shown)
}

// TestScaleOutNamesWhatIsServed: each command on the page is served with a store, and each
// command about keys that is served is on the page.
func TestScaleOutNamesWhatIsServed(t *testing.T) {
	_, part, found := strings.Cut(scaleOut(t), "\n## What is served\n")
	require.True(t, found)
	rows, _, _ := strings.Cut(part, "\n\n- ")
	named := regexp.MustCompile(`\b[A-Z]{2,}(\.[A-Z]+)?\b`).FindAllString(rows, -1)
	table, err := commands.NewStoreTable(nil)
	require.NoError(t, err)
	served := map[string]bool{}
	for _, c := range table.Top() {
		served[strings.ToUpper(c.Name)] = true
		if c.Parse != nil {
			require.Contains(t, named, strings.ToUpper(c.Name))
		}
	}
	require.Greater(t, len(named), 30)
	for _, name := range named {
		if name != "BLOCK" && name != "ID" && name != "RESERVE" {
			require.True(t, served[name], name)
		}
	}
}
