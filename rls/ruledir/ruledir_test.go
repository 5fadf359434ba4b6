package ruledir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rls/ruledir"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// read returns the names and the texts of the files that path names.
func read(t *testing.T, path string) (*ruledir.State, []string) {
	t.Helper()
	s, err := ruledir.Look(path)
	require.NoError(t, err)
	files, err := s.Read()
	require.NoError(t, err)
	var all []string
	for _, f := range files {
		all = append(all, filepath.Base(f.Name)+" "+string(f.Text))
	}
	return s, all
}

// TestFilesOfADirectory: its YAML files by name, without hidden ones and directories.
func TestFilesOfADirectory(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "b", "a.yml": "a", ".c.yaml": "hidden", "d.txt": "text", ".e/f.yaml": "hidden", "g.yaml/h.yaml": "below", "A.yaml": "A", "yaml": "no",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "d.txt"), filepath.Join(dir, "c.yaml")))
	_, all := read(t, dir)
	require.Equal(t, []string{"A.yaml A", "a.yml a", "b.yaml b", "c.yaml text"}, all)
	_, all = read(t, filepath.Join(dir, "d.txt"))
	require.Equal(t, []string{"d.txt text"}, all, "a file may have any name")
	_, all = read(t, filepath.Join(dir, ".e"))
	require.Equal(t, []string{"f.yaml hidden"}, all)
	_, err := ruledir.Look(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "z.yaml")))
	_, err = ruledir.Look(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "its rules would go unnoticed")
}

// TestChangesAreSeen: a new text, another file in the place of one, new and removed files, and the swap of a link as
// for the ConfigMap of a pod, whose files have the same sizes and times.
func TestChangesAreSeen(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1_700_000_000, 0)
	for _, version := range []string{"..1", "..2"} {
		path := filepath.Join(dir, version, "a.yaml")
		write(t, path, "text "+version[2:])
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	was, all := read(t, dir)
	require.Equal(t, []string{"a.yaml text 1"}, all)
	same := func() bool {
		is, err := ruledir.Look(dir)
		require.NoError(t, err)
		defer func() { was = is }()
		return is.Same(was)
	}
	require.True(t, same())
	require.NoError(t, os.Symlink("..2", filepath.Join(dir, "..new")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	require.False(t, same())
	_, all = read(t, dir)
	require.Equal(t, []string{"a.yaml text 2"}, all)
	require.True(t, same())
	write(t, filepath.Join(dir, "b.yaml"), "b")
	require.False(t, same())
	write(t, filepath.Join(dir, "b.yaml"), "bb")
	require.False(t, same())
	require.NoError(t, os.Chtimes(filepath.Join(dir, "b.yaml"), at, at))
	require.False(t, same())
	require.NoError(t, os.Rename(filepath.Join(dir, "b.yaml"), filepath.Join(dir, "c.yaml")))
	require.False(t, same())
	require.NoError(t, os.Remove(filepath.Join(dir, "c.yaml")))
	require.False(t, same())
	require.True(t, same())
	var none *ruledir.State
	require.True(t, none.Same(nil))
	require.False(t, none.Same(was))
	require.False(t, was.Same(nil))
}

// TestBounds: neither too many files nor too large ones are read.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	for i := range ruledir.MaxFiles {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), "")
	}
	_, err := ruledir.Look(dir)
	require.NoError(t, err)
	write(t, filepath.Join(dir, "more.yaml"), "")
	_, err = ruledir.Look(dir)
	require.ErrorContains(t, err, "more than 1000 files")

	dir = t.TempDir()
	large := func(name string, size int64) {
		write(t, filepath.Join(dir, name), "")
		require.NoError(t, os.Truncate(filepath.Join(dir, name), size))
	}
	for i := range 4 {
		large(fmt.Sprintf("%d.yaml", i), 16<<20)
	}
	s, err := ruledir.Look(dir)
	require.NoError(t, err)
	_, err = s.Read()
	require.NoError(t, err)
	large("more.yaml", 1)
	s, err = ruledir.Look(dir)
	require.NoError(t, err)
	_, err = s.Read()
	require.ErrorContains(t, err, "longer than 0 bytes")
	require.NoError(t, os.Truncate(filepath.Join(dir, "0.yaml"), 16<<20+1))
	s, err = ruledir.Look(filepath.Join(dir, "0.yaml"))
	require.NoError(t, err)
	_, err = s.Read()
	require.ErrorContains(t, err, "longer than 16777216 bytes")
}
