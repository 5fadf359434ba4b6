//go:build real

package deploy_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/programs"
)

// series is a metric in an expression, with what chooses among its labels.
var series = regexp.MustCompile(`\b(cellserver_[a-z_]+)(\{[^}]*\})?`)

// matcher is one condition of a series. Those with a variable or a pattern are not checked.
var matcher = regexp.MustCompile(`([a-z_]+)(=~|!=|=|!~)"([^"]*)"`)

// scraped are the series of a scrape: names, and the sets of their labels.
type scraped map[string][]string

// scrape reads the metrics of a server.
func scrape(t *testing.T, port string) (text string, found scraped) {
	t.Helper()
	reply, err := http.Get("http://127.0.0.1:" + port + "/metrics")
	require.NoError(t, err)
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Equal(t, http.StatusOK, reply.StatusCode)
	found = scraped{}
	for line := range strings.Lines(string(body)) {
		if s := series.FindStringSubmatch(line); s != nil && !strings.HasPrefix(line, "#") {
			found[s[1]] = append(found[s[1]], s[2])
		}
	}
	return string(body), found
}

// elsewhere are the metrics that only a server with a store or a replica shows.
var elsewhere = map[string]bool{
	"cellserver_store_up": true, "cellserver_store_unanswered_total": true, "cellserver_store_policies_age_seconds": true,
	"cellserver_store_change_lag_seconds": true, "cellserver_store_policies_subscribed": true, "cellserver_store_changes_unconfirmed_total": true,
	"cellserver_store_changes_lost_total": true, "cellserver_store_policy_files": true,
	"cellserver_store_policies_unreadable": true, "cellserver_primary_link_up": true, "cellserver_replication_lag_seconds": true,
}

// has requires that a server shows a series which an expression names.
func (s scraped) has(t *testing.T, where, name, labels string) {
	t.Helper()
	require.Contains(t, s, name, "%s: no server shows this", where)
	for _, m := range matcher.FindAllStringSubmatch(labels, -1) {
		label, operator, value := m[1], m[2], m[3]
		if label == "job" || label == "instance" {
			continue // Prometheus adds them
		}
		wanted := label + `="`
		if operator == "=" {
			wanted += value + `"`
		}
		found := false
		for _, shown := range s[name] {
			found = found || strings.Contains(shown, wanted)
		}
		require.True(t, found, "%s: %s has no label %s, but %q", where, name, wanted, s[name])
	}
}

// TestEveryMetricOfRulesAndDashboardIsShown scrapes a server to which everything has happened
// that is counted by its kind. Each name, label and value in the rules, in the dashboard and in
// the tests of the rules is in the scrape.
func TestEveryMetricOfRulesAndDashboardIsShown(t *testing.T) {
	needs(t, "make")
	admin, web := activation.Open(t, "admin-port"), activation.Open(t, "http-port")
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	require.NoError(t, os.WriteFile(limits, []byte("domain: a\n"), 0o600))
	limitador := filepath.Join(t.TempDir(), "limitador.yaml")
	require.NoError(t, os.WriteFile(limitador, []byte("[]\n"), 0o600))
	s := startWith(t, exec.Command(program(t), "--dir="+t.TempDir(), "--appendonly=yes", "--maxmemory=64mb", "--admin-port="+admin.Port(), "--http-port="+web.Port(), "--rls-config="+limits, "--limitador-limits="+limitador), "", admin, web)
	for range 40 {
		for _, command := range []string{"CL.THROTTLE api:k 9 10 3600", "EVAL return(1) 0", "KEYS *", "NOSUCH"} {
			_, err := s.ask(command)
			require.NoError(t, err)
		}
	}
	text, found := scrape(t, admin.Port())
	rules, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	tests, err := os.ReadFile("prometheus/cellserver.test.yml")
	require.NoError(t, err)
	// Annotations are prose, and so are names of rules.
	expressions := map[string]string{"rules": regexp.MustCompile(`(?m)^\s*(summary|#).*$`).ReplaceAllString(string(rules), "")}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			expressions[p.Title] += target.Expr + "\n"
		}
	}
	for _, v := range readDashboard(t).Templating.List {
		expressions[v.Name] = v.Query
	}
	checked := map[string]bool{}
	for where, text := range expressions {
		for _, e := range series.FindAllStringSubmatch(text, -1) {
			if elsewhere[e[1]] {
				continue
			}
			found.has(t, where, e[1], e[2])
			checked[e[1]] = true
		}
	}
	require.Greater(t, len(checked), 20)
	for _, e := range series.FindAllStringSubmatch(string(tests), -1) {
		if !elsewhere[e[1]] {
			require.Contains(t, found, e[1], "tests of the rules")
		}
	}
	judgedByPromtool(t, text)
}

// judgedByPromtool has promtool read the scrape.
func judgedByPromtool(t *testing.T, text string) {
	t.Helper()
	programs.Need(t, "promtool")
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
}
