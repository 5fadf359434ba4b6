package config_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
)

// TestOnlyTheCommandLineSetsAManualClock: no file, no variable and no command does, so that nothing that is kept makes a
// server for tests of another.
func TestOnlyTheCommandLineSetsAManualClock(t *testing.T) {
	const only = `option "clock": only the command line can set manual`
	c, err := config.Load([]string{"--clock", "manual"}, nil)
	require.NoError(t, err)
	require.True(t, c.ManualClock())
	require.False(t, c.Kept())

	_, err = config.Load(nil, []string{"CELLSERVER_CLOCK=manual"})
	require.EqualError(t, err, "environment variable CELLSERVER_CLOCK: "+only)
	path := writeConfig(t, "clock MANUAL\n")
	_, err = config.Load([]string{path}, nil)
	require.EqualError(t, err, path+":1: "+only)
	_, err = config.Load([]string{writeConfig(t, "include "+path+"\n")}, nil)
	require.EqualError(t, err, path+":1: "+only)
	require.Contains(t, config.Default().Set([][2]string{{"clock", "manual"}}), "can't set immutable config")

	for _, from := range [][]string{nil, {writeConfig(t, "clock system\n")}, {"--clock", "system"}} {
		c, err = config.Load(from, []string{"CELLSERVER_CLOCK=system"})
		require.NoError(t, err)
		require.False(t, c.ManualClock())
		require.True(t, c.Kept())
	}
	_, err = config.Load([]string{"--clock", "sundial"}, nil)
	require.ErrorContains(t, err, "argument(s) must be one of the following: system, manual")
}

// TestAManualClockExcludesWhatLasts: all contradictions are reported at once.
func TestAManualClockExcludesWhatLasts(t *testing.T) {
	_, err := config.Load([]string{"--clock", "manual", "--appendonly", "yes", "--save", "900", "1", "--replicaof", "h", "1"}, nil)
	for _, name := range []string{"appendonly", "save", "replicaof"} {
		require.ErrorContains(t, err, `command line: options "`+name+`" and "clock" exclude each other: `)
	}
	_, err = config.Load([]string{"--clock", "manual", "--store", "redis://a"}, nil)
	require.ErrorContains(t, err, `options "store" and "clock" exclude each other: a store decides by its own clock`)
}

// TestRewriteDoesNotKeepAManualClock: the file stays one that a start accepts.
func TestRewriteDoesNotKeepAManualClock(t *testing.T) {
	path := writeConfig(t, "clock system\nmaxclients 7\n")
	c, err := config.Load([]string{path, "--clock", "manual", "--maxclients", "8"}, nil)
	require.NoError(t, err)
	require.NoError(t, c.Rewrite(func([]acl.Line) []string { return nil }, func(path string, content []byte) error {
		return os.WriteFile(path, content, 0o600)
	}))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "clock system\nmaxclients 8\n", string(content))
	require.NoError(t, c.Reload())
	require.True(t, c.ManualClock())
}
