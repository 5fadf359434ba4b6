package script_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/script"
)

// TestLoadFindsScriptsInBothPlaces tests that scripts are in the order of their folders and names,
// and that a duplicate name is refused.
func TestLoadFindsScriptsInBothPlaces(t *testing.T) {
	root := t.TempDir()
	write := func(file string) {
		file = filepath.Join(root, filepath.FromSlash(file))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("== one\n> PING\n< +PONG\n"), 0o600))
	}
	names := func(folders ...string) (names []string) {
		all, err := script.Load(root, folders...)
		require.NoError(t, err)
		for _, s := range all {
			require.FileExists(t, s.File)
			names = append(names, s.Name)
		}
		return names
	}
	_, err := script.Load(root, script.Folders...)
	require.ErrorContains(t, err, "there are no scripts of redis, redis-cell, cellserver")
	write("compat_test/scripts/redis/b.script")
	write("commands/strings/testdata/scripts/redis/c.script")
	write("commands/lists/testdata/scripts/redis/a.script")
	write("commands/lists/testdata/scripts/cellserver/a.script")
	require.Equal(t, []string{"redis/a", "redis/b", "redis/c"}, names("redis"))
	require.Equal(t, []string{"redis/a", "redis/b", "redis/c", "cellserver/a"}, names(script.Folders...))
	one, err := script.LoadDir(filepath.Join(root, "commands/strings/testdata/scripts"))
	require.NoError(t, err)
	require.Len(t, one, 1)
	write("commands/strings/testdata/scripts/redis/a.script")
	_, err = script.Load(root, "redis")
	require.ErrorContains(t, err, "two scripts have the same name")
}
