//go:build real

package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRulesFireWhenTheyShould: promtool finds the rules well-formed, and each alert fires in the
// incident of its test and in no other.
func TestRulesFireWhenTheyShould(t *testing.T) {
	needs(t, "promtool")
	require.Contains(t, must(t, "prometheus", "promtool", "check", "rules", "--lint=all", "--lint-fatal", "cellserver.rules.yml"), "SUCCESS")
	require.Contains(t, must(t, "prometheus", "promtool", "test", "rules", "cellserver.test.yml"), "SUCCESS")
	rules, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	tests, err := os.ReadFile("prometheus/cellserver.test.yml")
	require.NoError(t, err)
	for _, alert := range alertName.FindAllStringSubmatch(string(rules), -1) {
		_, fires, _ := strings.Cut(string(tests), "alertname: "+alert[1]+"\n        exp_alerts:\n          - exp_labels:")
		require.NotEmpty(t, fires, "no test fires %s", alert[1])
	}
}

// TestComposeConfiguresPrometheus: with the rules beside it, as the compose file mounts them.
func TestComposeConfiguresPrometheus(t *testing.T) {
	needs(t, "promtool")
	dir := t.TempDir()
	for from, to := range map[string]string{"compose/prometheus.yml": "prometheus.yml", rulesFile: "cellserver.rules.yml"} {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), content, 0o600))
	}
	require.Contains(t, must(t, dir, "promtool", "check", "config", "prometheus.yml"), "SUCCESS")
}

// variables are what Grafana puts into the expressions of a dashboard.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$job", "cellserver", "$instance", ".*")

// TestDashboardHasExpressions: promtool can read every expression of the dashboard.
func TestDashboardHasExpressions(t *testing.T) {
	needs(t, "promtool")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, p := range readDashboard(t).Panels {
		for i, target := range p.Targets {
			quoted, err := json.Marshal(variables.Replace(target.Expr))
			require.NoError(t, err)
			rules.WriteString("  - record: a:b\n    expr: " + string(quoted) + "\n    labels: {panel: \"" + strconv.Itoa(p.ID) + "-" + strconv.Itoa(i) + "\"}\n")
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	require.Contains(t, must(t, ".", "promtool", "check", "rules", file), "SUCCESS")
}
