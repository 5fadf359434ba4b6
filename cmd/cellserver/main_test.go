package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagsThatPrintStartNoServer runs the flags that print something and start no
// server.
func TestFlagsThatPrintStartNoServer(t *testing.T) {
	for flag, want := range map[string]string{
		"--version":       "cellserver 0.",
		"-v":              "cellserver 0.",
		"--help":          "Usage: cellserver [file.conf] [--name value ...]",
		"-h":              "Usage: cellserver [file.conf] [--name value ...]",
		"--sample-config": "\nport 6379\n",
	} {
		var out, errs bytes.Buffer
		require.Zero(t, run([]string{flag}, nil, &out, &errs), flag)
		require.Contains(t, out.String(), want, flag)
		require.Empty(t, errs.String(), flag)
	}
}

// TestEveryFaultIsReportedAndTheStatusIsOne starts the program with several faults. It
// reports all of them in one message, and its status is 1.
func TestEveryFaultIsReportedAndTheStatusIsOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.conf")
	require.NoError(t, os.WriteFile(file, []byte("port x\nnosuch 1\n"), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, 1, run([]string{file, "--maxclients", "0", "--bind", "0.0.0.0"}, []string{"CELLSERVER_NOSUCH=1"}, &out, &errs))
	require.Empty(t, out.String())
	for _, fault := range []string{"bad.conf:1:", "bad.conf:2:", "CELLSERVER_NOSUCH", "maxclients"} {
		require.Contains(t, errs.String(), fault)
	}
	require.True(t, strings.HasPrefix(errs.String(), "cellserver: "))

	errs.Reset()
	require.Equal(t, 1, run([]string{"--port", "0"}, nil, &out, &errs))
	require.Contains(t, errs.String(), "nothing to listen on")
}
