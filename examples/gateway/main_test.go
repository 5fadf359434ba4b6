//go:build real

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/examples/demo"
	"github.com/cellserver/cellserver/internal/programs"
)

// TestDemoBlocksATenant plays the demo in a short form: the tenant gets nothing while it is blocked, and the other one is
// not affected.
func TestDemoBlocksATenant(t *testing.T) {
	if testing.Short() {
		t.Skip("Envoy is left to the full test run")
	}
	programs.Need(t, "redis-cli")
	root := filepath.Join("..", "..")
	if _, err := demo.Envoy(root); err != nil {
		programs.Missing(t, "no envoy")
	}
	program := filepath.Join(t.TempDir(), "cellserver")
	said, err := exec.Command("go", "build", "-o", program, "../../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", said)
	var out bytes.Buffer
	s := show{server: program, root: root, pause: time.Second, w: &out}
	require.NoError(t, s.run(t.Context()), out.String())
	require.Contains(t, out.String(), `1 for "acme" is denied: block "acme" applies (loop)`)

	rows := regexp.MustCompile(`(?m)^  (acme|globex) +(\d+) x 200 +(\d+) x 429 +(\d+) failed$`).FindAllStringSubmatch(out.String(), -1)
	require.Len(t, rows, len(tenants)*len(steps), out.String())
	for i, row := range rows {
		admitted, denied := number(t, row[2]), number(t, row[3])
		require.Zero(t, number(t, row[4]), out.String())
		switch step := i / len(tenants); {
		case row[1] == "acme" && step == len(steps)-1:
			require.LessOrEqual(t, denied, 1, "the request that ran when the limit changed: %s", out.String())
		case row[1] == "globex", step == 0:
			require.Zero(t, denied, out.String())
		case step == 1 || step == 2:
			require.LessOrEqual(t, admitted, 1, "the request that ran when the block began: %s", out.String())
		}
	}
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
