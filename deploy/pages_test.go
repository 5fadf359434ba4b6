package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

// TestMonitoringExplainsEveryAlert: the page has a section for each alert.
func TestMonitoringExplainsEveryAlert(t *testing.T) {
	page, err := os.ReadFile("../docs/operations/monitoring.md")
	require.NoError(t, err)
	rules, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	alerts := alertName.FindAllStringSubmatch(string(rules), -1)
	require.NotEmpty(t, alerts)
	for _, a := range alerts {
		require.Contains(t, string(page), "\n| "+a[1]+" | ")
	}
	require.Equal(t, len(alerts), strings.Count(string(page), "\n| Cellserver"), "an alert is explained that does not exist")
}

// optionInEnvironment is an option as a page or the compose file sets it.
var optionInEnvironment = regexp.MustCompile(`\bCELLSERVER_([A-Z_]+)(: "?|=)([^\s"]*)`)

// TestOptionsOfPagesExist: the server has every option that pages and the compose file put into
// the environment.
func TestOptionsOfPagesExist(t *testing.T) {
	found := 0
	for _, name := range []string{"../docs/operations/docker.md", "compose/compose.yaml"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, o := range optionInEnvironment.FindAllStringSubmatch(string(text), -1) {
			if o[1] == "PASSWORD" {
				continue // of compose
			}
			option := strings.ToLower(strings.ReplaceAll(o[1], "_", "-"))
			require.Len(t, config.Default().Get(func(name string) bool { return name == option }), 1, option)
			found++
		}
	}
	require.GreaterOrEqual(t, found, 5)
}
