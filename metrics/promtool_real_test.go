//go:build real

package metrics_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPromtoolAcceptsTheMetrics: it knows the conventions for names and helps.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scrape(t, worst))
	var said bytes.Buffer
	check.Stdout, check.Stderr = &said, &said
	require.NoError(t, check.Run(), "%s", &said)
	require.Empty(t, said.String())
}
