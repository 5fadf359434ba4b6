//go:build real

package compat_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
	"github.com/cellserver/cellserver/internal/programs"
)

// valkeyVersion is the version of the suite that the list is about.
const valkeyVersion = "7.2.7"

// valkeyUnitTimeout bounds one file of the suite.
const valkeyUnitTimeout = 10 * time.Minute

// firstValkeyPort is the first of those on which the parts of the suite talk to each other.
const firstValkeyPort = 24000

// valkeyUnits are the files of the suite that are about something that we have.
var valkeyUnits = []string{
	"unit/protocol", "unit/keyspace", "unit/scan", "unit/info-command", "unit/quit",
	"unit/type/string", "unit/type/incr", "unit/type/list", "unit/type/set", "unit/type/zset", "unit/type/hash",
	"unit/expire", "unit/multi", "unit/scripting", "unit/pubsub", "unit/pause", "unit/tracking",
	"unit/introspection", "unit/introspection-2",
}

// valkeyOwnServers are the files whose subject is the configuration of a server, so that they
// start servers themselves.
var valkeyOwnServers = []string{"unit/acl", "unit/acl-v2", "unit/slowlog", "unit/latency-monitor"}

// allValkeyUnits are both kinds of files.
func allValkeyUnits() []string { return slices.Concat(valkeyUnits, valkeyOwnServers) }

// TestValkeySuite plays Valkey's own test suite against the server: the files that are
// about something that we have, from a checkout of version 7.2.7 that VALKEY_DIR names.
// What fails has to be in the list, with a reason; an entry that explains nothing any
// more is reported as well. Nothing of the suite is kept here, and no test fetches it.
func TestValkeySuite(t *testing.T) {
	checkout := os.Getenv("VALKEY_DIR")
	if checkout == "" {
		t.Skip("VALKEY_DIR names no checkout of Valkey " + valkeyVersion)
	}
	tclsh := programs.Find(t, "tclsh")
	command, err := process.Command("..", t.TempDir())
	require.NoError(t, err)
	suite := prepareValkey(t, checkout, command)
	entries := readValkeyList(t)
	t.Run("files", func(t *testing.T) {
		for _, unit := range allValkeyUnits() {
			t.Run(unit, func(t *testing.T) {
				t.Parallel()
				outcomes := playValkey(t, tclsh, suite, command, unit, entries)
				for _, fault := range judgeValkey(unit, outcomes, entries) {
					t.Error(fault)
				}
				t.Log(countValkey(outcomes))
			})
		}
	})
	for _, e := range entries {
		if slices.Contains(allValkeyUnits(), e.unit) || e.unit == "*" {
			require.Positive(t, e.matched.Load(), "%s explains nothing: %s | %s | %s", valkeyLeftOut, e.unit, e.tests, e.says)
		}
	}
}

// prepareValkey copies the suite, puts our prelude in front of its files, and the server under
// test where it finds its own.
func prepareValkey(t *testing.T, checkout string, command []string) string {
	if version, err := os.ReadFile(filepath.Join(checkout, "src", "version.h")); err == nil {
		require.Contains(t, string(version), `"`+valkeyVersion+`"`, "the list is about another version of the suite")
	}
	suite := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(suite, "tests"), os.DirFS(filepath.Join(checkout, "tests"))))
	require.NoError(t, os.Mkdir(filepath.Join(suite, "src"), 0o700))
	start := "#!/bin/sh\nexec '" + strings.Join(command, "' '") + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(suite, "src", "valkey-server"), []byte(start), 0o700)) //nolint:gosec // a program
	prelude, err := os.ReadFile("valkey/prelude.tcl")
	require.NoError(t, err)
	ownServers, err := os.ReadFile("valkey/own_servers.tcl")
	require.NoError(t, err)
	for _, unit := range allValkeyUnits() {
		name := filepath.Join(suite, "tests", unit+".tcl")
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		changed := string(prelude) + string(text)
		if slices.Contains(valkeyOwnServers, unit) {
			changed = string(ownServers) + string(text)
		}
		if unit == "unit/scripting" {
			// It runs everything four times: by FUNCTION, which we do not have, and by EVAL,
			// each under the name that Redis gives its table and under Valkey's own.
			const every = "\nforeach is_eval {0 1} {\nforeach script_compatibility_api {server redis} {"
			require.Contains(t, changed, every)
			changed = strings.Replace(changed, every, "\nforeach is_eval {1} {\nforeach script_compatibility_api {redis} {", 1)
		}
		require.NoError(t, os.WriteFile(name, []byte(changed), 0o600))
	}
	return suite
}

// playValkey runs one file of the suite against a server of its own, or has it start those
// that it asks for.
func playValkey(t *testing.T, tclsh, suite string, command []string, unit string, entries []*valkeyEntry) []valkeyOutcome {
	args := []string{
		"tests/test_helper.tcl", "--single", unit, "--durable", "--clients", "1", "--timeout", "120",
		"--baseport", strconv.Itoa(firstValkeyPort + 100*slices.Index(allValkeyUnits(), unit)),
	}
	if slices.Contains(valkeyOwnServers, unit) {
		// What the suite starts there has files of fixed names.
		own := t.TempDir()
		require.NoError(t, os.CopyFS(own, os.DirFS(suite)))
		suite = own
		args = append(args, "--tags", "-needs:repl -cluster -large-memory")
	} else {
		server, port := startForValkey(t, command)
		defer func() { require.NoError(t, server.Stop()) }()
		args = append(args, "--host", "127.0.0.1", "--port", port, "--ignore-encoding", "--ignore-digest", "--no-latency",
			"--tags", "-needs:debug -needs:repl -needs:reset -cluster -large-memory")
	}
	for _, e := range entries {
		if e.notRun && e.unit == unit {
			args = append(args, "--skiptest", "/"+e.name.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), valkeyUnitTimeout)
	defer cancel()
	play := exec.CommandContext(ctx, tclsh, args...)
	play.Dir = suite
	play.WaitDelay = time.Second
	output, err := play.CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		require.NoError(t, err)
	}
	outcomes, done := parseValkey(string(output))
	if !done {
		t.Errorf("the file was not played to its end: %s", lastLines(string(output), 20))
	}
	return outcomes
}

// startForValkey starts a server that a file of the suite connects to.
func startForValkey(t *testing.T, command []string) (server *process.Server, port string) {
	t.Helper()
	// One event loop, for the suite takes it that a command is through before another
	// connection's is begun.
	server, err := process.Start(append(slices.Clone(command), "--io-threads", "1"), t.TempDir())
	require.NoError(t, err)
	_, port, err = net.SplitHostPort(server.Addr)
	require.NoError(t, err)
	return server, port
}

// countValkey says how many tests there are of which outcome.
func countValkey(outcomes []valkeyOutcome) string {
	counts := make(map[string]int)
	for i := range outcomes {
		counts[outcomes[i].status]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d not run, %d for other servers by their tags",
		counts["ok"], counts["err"]+counts["exception"], counts["skip"], counts["ignore"])
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
