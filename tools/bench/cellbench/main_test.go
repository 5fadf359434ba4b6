package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests are in package main because a program cannot be imported.

// cellbench runs the program and returns what it printed.
func cellbench(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, s := range subcommands() {
		status, _, stderr := cellbench(t, s.name, "--help")
		require.Equal(t, exitOK, status)
		require.Contains(t, stderr, "Usage: cellbench "+s.name)
	}
	_, _, stderr := cellbench(t, "--help")
	require.Contains(t, stderr, "expiry   measure the latency of others while many keys expire at once")
}

func TestTargetOption(t *testing.T) {
	o := options{serverOptions: serverOptions{user: "me", password: "all", protocol: 3, pids: list{"7", "b=9"}}}
	for text, want := range map[string]struct {
		name, address, password, command string
		pid                              int
	}{
		"6380":                       {"127.0.0.1:6380", "127.0.0.1:6380", "all", "", 7},
		"a=h:1":                      {"a", "h:1", "all", "", 7},
		"a b=h:1 SET k=1 2":          {"a b", "h:1", "all", "SET k=1 2", 7},
		"6380 SET k=1 2":             {"127.0.0.1:6380", "127.0.0.1:6380", "all", "SET k=1 2", 7},
		"b=/run/s PING":              {"b", "/run/s", "all", "PING", 9},
		"redis://:own@h:1":           {"h:1", "h:1", "own", "", 7},
		"b=redis://:own@h:1 GET {q}": {"b", "h:1", "own", "GET {q}", 9},
	} {
		target, command, err := o.target(text)
		require.NoError(t, err, text)
		require.Equal(t, want.name, target.Name, text)
		require.Equal(t, want.address, target.Address, text)
		require.Equal(t, want.password, target.Password, text)
		require.Equal(t, want.command, command, text)
		require.Equal(t, want.pid, target.PID, text)
		require.True(t, target.RESP3)
	}
	for _, text := range []string{"", "host", "a=", "a=host", "host PING"} {
		_, _, err := o.target(text)
		require.Error(t, err, text)
	}
}

func TestShellWordsHideSecrets(t *testing.T) {
	got := shellWords([]string{"--auth", "s3cret", "--auth=s3cret", "-auth", "s3cret", "--target", "a=redis://u:s3cret@h:1 GET it's", "redis://:s3@cret@h", "-c", "5"})
	require.NotContains(t, got, "s3")
	require.Equal(t, `--auth '***' '--auth=***' -auth '***' --target 'a=redis://***@h:1 GET it'\''s' 'redis://***@h' -c 5`, got)
}

func TestDefaultTarget(t *testing.T) {
	o := newOptions("run", "", "", &strings.Builder{})
	o.addLoad()
	require.NoError(t, o.parse(nil))
	contenders, err := o.contenders()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:6379", contenders[0].Target.Address)
	require.Equal(t, defaultCommand, contenders[0].Options.Mix.Templates()[0].String())
}
