//go:build real

package metrics_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// TestPromtoolAcceptsTheMetrics: promtool checks the conventions for names and help texts. Names of another program's metrics are
// left out: dashboards know them as they are.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool := programs.Find(t, "promtool")
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	var own []string
	for line := range strings.Lines(scrape(t, handler(t, nil))) {
		if !strings.Contains(line, "ratelimit_service_rate_limit_") {
			own = append(own, line)
		}
	}
	check.Stdin = strings.NewReader(strings.Join(own, ""))
	var said bytes.Buffer
	check.Stdout, check.Stderr = &said, &said
	require.NoError(t, check.Run(), "%s", &said)
	require.Empty(t, said.String())
}
