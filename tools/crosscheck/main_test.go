package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// module writes a module of the given files, and returns its directory.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example\n\ngo 1.26\n"
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestCheckFindsWhatOnePlatformLacks(t *testing.T) {
	dir := module(t, map[string]string{
		"a.go":         "package a\n\nvar _ = unixOnly\n",
		"a_linux.go":   "package a\n\nvar unixOnly = 1\n",
		"a_real.go":    "//go:build real\n\npackage a\n\nvar _ = unixOnly\n",
		"a_test.go":    "package a\n\nvar _ = unixOnly\n",
		"a_windows.go": "package a\n",
	})

	faults, err := check(dir, "linux/arm64")
	require.NoError(t, err)
	require.Empty(t, faults)

	faults, err = check(dir, "windows/amd64")
	require.NoError(t, err)
	said := ""
	for _, fault := range faults {
		require.Equal(t, "undefined: unixOnly", fault.Msg)
		said += fault.Pos
	}
	for _, file := range []string{"a.go", "a_real.go", "a_test.go"} {
		require.Contains(t, said, string(filepath.Separator)+file)
	}
}

func TestCheckFailsIfNothingIsChecked(t *testing.T) {
	_, err := check(module(t, map[string]string{"a.go": "package a\n"}), "windows")
	require.ErrorContains(t, err, "not a platform")

	empty := t.TempDir()
	for dir, platform := range map[string]string{
		module(t, map[string]string{"a.go": "package a\n"}): "windows/none",
		module(t, map[string]string{}):                      "windows/amd64",
		empty:                                               "linux/amd64",
	} {
		faults, err := check(dir, platform)
		require.True(t, err != nil || len(faults) > 0, "%s in %s", platform, dir)
	}
}
