package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const rulesFile = "prometheus/cellserver.rules.yml"

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

var alertName = regexp.MustCompile(`(?m)^      - alert: (\w+)$`)

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

// dashboard is the part of a dashboard of Grafana that is checked.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
		Datasource  struct{ UID string }
		Description string
	}
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile("grafana/cellserver.json")
	require.NoError(t, err)
	d := &dashboard{}
	require.NoError(t, json.Unmarshal(text, d))
	return d
}

// variables are what Grafana puts into the expressions of a dashboard.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$job", "cellserver", "$instance", ".*")

// TestDashboardIsWellFormed: panels lie beside each other, and promtool can read every
// expression.
func TestDashboardIsWellFormed(t *testing.T) {
	needs(t, "promtool")
	d := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s lies on %s", p.Title, taken[at])
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
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
