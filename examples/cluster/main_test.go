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

// TestDemoHoldsOneLimit plays the demo in a short form: all three servers admit calls, all
// of them together no more than the limit, and none goes on without a master for long. A block reaches all of them.
func TestDemoHoldsOneLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster is left to the full test run")
	}
	if _, err := demo.Cluster(); err != nil {
		programs.Missing(t, "no server and client of a cluster")
	}
	program := filepath.Join(t.TempDir(), "cellserver")
	said, err := exec.Command("go", "build", "-o", program, "../../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", said)
	var out bytes.Buffer
	d := cluster{server: program, kill: 2, seconds: 14, nodeTimeout: time.Second, w: &out}
	require.NoError(t, d.run(t.Context()), out.String())
	require.Contains(t, out.String(), "kill -9 of the master that has the limit")
	last := regexp.MustCompile(`(?m)^(\d+) admitted in ([\d.]+) s\. .* = (\d+)\.$`).FindStringSubmatch(out.String())
	require.NotNil(t, last, out.String())
	admitted, err := strconv.Atoi(last[1])
	require.NoError(t, err)
	allowed, err := strconv.Atoi(last[3])
	require.NoError(t, err)
	// What the replica lacked of the last moments may be admitted again.
	require.LessOrEqual(t, admitted, allowed+perSecond, out.String())

	rows := regexp.MustCompile(`(?m)^ +(\d+)  +(\d+) +(\d+) +(\d+) +(\d+) +\d+ +\d+$`).FindAllStringSubmatch(out.String(), -1)
	require.Len(t, rows, d.seconds, out.String())
	var each [3]int
	after := 0
	for _, row := range rows {
		var n [6]int
		for i := range n[1:] {
			n[i+1], err = strconv.Atoi(row[i+1])
			require.NoError(t, err)
		}
		for i := range each {
			each[i] += n[2+i]
		}
		if n[1] > d.kill+1 {
			after += n[5]
		}
	}
	for i := range each {
		require.Positive(t, each[i], "every server has a part of it: %s", out.String())
	}
	require.Positive(t, after, "the servers go on with the replica: %s", out.String())
	require.Regexp(t, `RL.BLOCK demo mallory at server 1\n(  server [123] denies the key after \d+ ms\n){3}$`, out.String())
}
