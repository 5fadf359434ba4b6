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

// TestPromtoolAcceptsTheMetrics: promtool checks the conventions for names and help texts.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool := programs.Find(t, "promtool")
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scrape(t, handler(t, nil)))
	var said bytes.Buffer
	check.Stdout, check.Stderr = &said, &said
	require.NoError(t, check.Run(), "%s", &said)
	require.Empty(t, said.String())
}
