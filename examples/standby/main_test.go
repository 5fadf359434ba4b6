//go:build real

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/examples/demo"
	"github.com/cellserver/cellserver/internal/programs"
)

// TestDemoLosesNothing plays the demo in a short form: calls go on after the primary was
// killed, all that was acknowledged is there, and the limit is kept.
func TestDemoLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("sentinels are left to the full test run")
	}
	if _, err := demo.Sentinel(""); err != nil {
		programs.Missing(t, "no sentinel")
	}
	program := filepath.Join(t.TempDir(), "cellserver")
	said, err := exec.Command("go", "build", "-o", program, "../../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", said)
	var out bytes.Buffer
	s := show{server: program, replicas: 2, acks: 1, kill: 2, seconds: 12, down: time.Second, w: &out}
	require.NoError(t, s.run(t.Context()), out.String())
	require.Contains(t, out.String(), "kill -9 of the primary")
	require.Contains(t, out.String(), "the sentinels have made")

	n := numbers(t, out.String(), `(?m)^INCR: (\d+) acknowledged, the counters add up to (\d+): (\d+) lost, \d+ done`)
	require.Positive(t, n[0], out.String())
	require.GreaterOrEqual(t, n[1], n[0], out.String())
	require.Zero(t, n[2], "with repl-ack-replies 1 nothing is lost: %s", out.String())
	n = numbers(t, out.String(), `(?m)^CL\.THROTTLE: (\d+) admitted in .* = (\d+)\.$`)
	require.Positive(t, n[0], out.String())
	require.LessOrEqual(t, n[0], n[1], out.String())

	require.GreaterOrEqual(t, len(answered.FindAllString(out.String(), -1)), s.seconds, out.String())
	_, after, _ := strings.Cut(out.String(), "the sentinels have made")
	require.True(t, slices.ContainsFunc(answered.FindAllStringSubmatch(after, -1), func(row []string) bool {
		return row[2] != "0"
	}), "calls go on with the next primary: %s", out.String())
}

// answered is the row of a second.
var answered = regexp.MustCompile(`(?m)^ +(\d+)  +(\d+)  +\d+  +\d+  +\d+(  last: .*)?$`)

// numbers returns what the groups of the pattern match.
func numbers(t *testing.T, text, pattern string) (found []int) {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, match, text)
	for _, m := range match[1:] {
		n, err := strconv.Atoi(m)
		require.NoError(t, err)
		found = append(found, n)
	}
	return found
}
