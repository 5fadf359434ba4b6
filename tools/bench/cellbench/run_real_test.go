//go:build real

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
)

// server replies to CL.THROTTLE with a fixed decision, to SET with an error, and to other commands
// with OK.
func server(t *testing.T, limited int64) string {
	t.Helper()
	return fakeresp.Start(t, "tcp", "127.0.0.1:0", func(args []string) string {
		switch args[0] {
		case "CL.THROTTLE":
			return fakeresp.Five(limited, 16, 3, -1, 2)
		case "SET":
			return "-OOM no room\r\n"
		case "DBSIZE":
			return ":0\r\n"
		}
		return "+OK\r\n"
	})
}

func TestRun(t *testing.T) {
	address := server(t, 1)
	for _, args := range [][]string{{"run"}, {}} {
		status, stdout, stderr := cellbench(t, append(args, "--target", "mine="+address, "-n", "500", "-c", "3", "-P", "4", "--warmup", "0s")...)
		require.Equal(t, exitOK, status, stderr)
		require.Empty(t, stderr, "no progress where nobody looks")
		require.Contains(t, stdout, "mine: a server at "+address)
		require.Regexp(t, `mine\s+GCRA, 16 at once and one per 2s\s+0\s+500\s+held by 100000 keys`, stdout)
	}
}

func TestRunFails(t *testing.T) {
	address := server(t, 0)
	short := []string{"--target", address, "-n", "100", "-c", "2", "--warmup", "0s"}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		stderr string
	}{
		{"a limiter that lets everything through", []string{"--keys", "1"}, exitViolated, "VIOLATED"},
		{"and is not checked", []string{"--keys", "1", "--no-check"}, exitOK, ""},
		{"errors", []string{"--command", "SET {key} {data}"}, exitFailed, "100 error replies to \"SET {key} {data}\", the first: OOM no room"},
		{"errors that are expected", []string{"--command", "SET {key} {data}", "--allow-errors"}, exitOK, "OOM no room"},
		{"another limit", []string{"--command", "CL.THROTTLE {key} 1 30 60"}, exitFailed, "not five integers with the limit 2"},
		{"no such option", []string{"--what"}, exitUsage, "not defined"},
		{"a stray word", []string{"PING"}, exitUsage, `"PING" is no option`},
		{"a bad command", []string{"--command", "'"}, exitUsage, "quote"},
		{"a bad choice", []string{"--choose", "best"}, exitUsage, "best"},
		{"a bad quantity", []string{"-q", "some"}, exitUsage, "some"},
		{"a bad range", []string{"-q", "1-x"}, exitUsage, "1-x"},
		{"a bad protocol", []string{"--resp", "4"}, exitUsage, "version 4"},
		{"a bad process", []string{"--pid", "x"}, exitUsage, "not a process"},
		{"keys that do not fit", []string{"--key-width", "3"}, exitUsage, "do not fit in 3 digits"},
		{"several targets", []string{"--target", address}, exitUsage, "cellbench compare"},
		{"a file that cannot be written", []string{"--keys", "100000", "--json", filepath.Join(t.TempDir(), "no", "where")}, exitFailed, "no such file"},
	} {
		status, _, stderr := cellbench(t, append(append([]string{"run"}, short...), c.args...)...)
		require.Equal(t, c.status, status, "%s: %s", c.name, stderr)
		require.Contains(t, stderr, c.stderr, c.name)
	}
	status, _, stderr := cellbench(t, "run", "--target", filepath.Join(t.TempDir(), "nobody"))
	require.Equal(t, exitFailed, status)
	require.Contains(t, stderr, "connecting to")
}

func TestCompareWritesItsFiles(t *testing.T) {
	dir := t.TempDir()
	page, data := filepath.Join(dir, "x.html"), filepath.Join(dir, "x.json")
	first, second := server(t, 1), server(t, 1)
	status, stdout, stderr := cellbench(t, "compare",
		"--target", "ours="+first, "--target", "the other="+second+" PING", "--auth", "hunter2", "--rounds", "3",
		"-n", "60", "-c", "2", "--warmup", "0s", "--html", page, "--json", data, "--title", "Mine", "--markdown")
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, stdout, "| the other |")
	require.Contains(t, stdout, "Ratios, ours divided by the target")

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<title>Mine</title>")
	require.Contains(t, string(text), "<svg")
	require.NotContains(t, string(text), "hunter2")

	text, err = os.ReadFile(data)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	var read struct {
		Command string
		Targets []struct {
			Name   string
			Rounds []struct{ Count int }
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	require.Contains(t, read.Command, "cellbench compare --target ours="+first)
	require.Len(t, read.Targets, 2)
	require.Len(t, read.Targets[1].Rounds, 3)
	require.Equal(t, 60, read.Targets[1].Rounds[2].Count)

	status, _, stderr = cellbench(t, "compare", "--target", first)
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "two targets")
}

func TestSweep(t *testing.T) {
	address := server(t, 1)
	status, stdout, stderr := cellbench(t, "sweep", "--target", "a="+address, "--target", "b="+address+" PING", "--rounds", "1",
		"-n", "20", "--warmup", "0s", "--pipelines", "1,3", "--connections", "2, 4")
	require.Equal(t, exitOK, status, stderr)
	for _, column := range []string{"P=1, 2 conn.", "P=3, 2 conn.", "P=1, 4 conn.", "P=3, 4 conn."} {
		require.Contains(t, stdout, column)
	}
	for _, wrong := range []string{"", "x", "0", "1,,2"} {
		status, _, _ = cellbench(t, "sweep", "--target", "a="+address, "--target", "b="+address, "--pipelines", wrong)
		require.Equal(t, exitUsage, status, wrong)
	}
}

func TestIdleAndExpiry(t *testing.T) {
	address := server(t, 0)
	status, stdout, stderr := cellbench(t, "idle", "--target", address, "-c", "5", "--settle", "1ms")
	if runtime.GOOS == "linux" {
		require.Equal(t, exitOK, status, stderr)
		require.Contains(t, stdout, "bytes per connection")
	} else {
		require.Equal(t, exitFailed, status)
	}
	status, stdout, stderr = cellbench(t, "expiry", "--target", address, "--keys", "10", "--lead", "3s", "--before", "50ms", "--tail", "500ms",
		"--rate", "100", "-c", "2", "--foreground", "PING", "--markdown")
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, stdout, "| "+address+" | 10 |")
}

func TestInterruptedRunStillReports(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	address := fakeresp.Start(t, "tcp", "127.0.0.1:0", func([]string) string {
		if calls++; calls > 50 {
			cancel()
		}
		return "+OK\r\n"
	})
	var stdout, stderr bytes.Buffer
	status := run(ctx, []string{"--target", address, "--command", "PING", "-d", "1h", "--warmup", "0s", "-c", "1"}, &stdout, &stderr)
	require.Equal(t, exitOK, status, stderr.String())
	require.Contains(t, stdout.String(), "Latency in µs")
}
