package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// printed writes the program's output to a file and returns its path.
func printed(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, run(args, nil, &out, &errs), "%s", &errs)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// TestReleaseDate: the date comes from the packager, then from the release, then from the commit,
// and never from the clock.
func TestReleaseDate(t *testing.T) {
	commit := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-03-04T05:06:07+02:00"}}}
	for _, c := range []struct {
		chosen, released string
		build            *debug.BuildInfo
		want             string
	}{
		{"1767225600", "1767312000", commit, "2026-01-01"},
		{"", "1767312000", commit, "2026-01-02"},
		{"x", "", commit, "2026-03-04"},
		{"", "", &debug.BuildInfo{}, "0001-01-01"},
		{"", "", nil, "0001-01-01"},
	} {
		require.Equal(t, c.want, releaseDate(c.chosen, c.released, c.build).Format(time.DateOnly))
	}
}

// TestEveryOptionOfACommandIsDescribed: the manual, from which the man page and the completions are
// made, has exactly the options that each command accepts.
func TestEveryOptionOfACommandIsDescribed(t *testing.T) {
	for tool, flags := range map[string]*flag.FlagSet{
		"ping": pingFlags(&pingOptions{}), "top": topFlags(&topOptions{}), "doctor": doctorFlags(&doctorOptions{}),
		"import": (&migration{}).flags("import"), "export": (&migration{}).flags("export"), "copy": (&copying{}).flags(), "policy": policyFlags(&connectionFlags{}),
	} {
		var want, got []string
		flags.VisitAll(func(f *flag.Flag) { want = append(want, f.Name) })
		for _, c := range described().Commands {
			if c.Name == tool {
				for _, f := range c.Flags {
					got = append(got, f.Name)
				}
			}
		}
		require.ElementsMatch(t, want, got, tool)
	}
}
