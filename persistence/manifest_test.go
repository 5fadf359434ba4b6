package persistence_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// sealed returns a manifest of these lines with the right checksum.
func sealed(lines ...string) string {
	text := strings.Join(lines, "\n") + "\n"
	return text + fmt.Sprintf("checksum %08x\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// Every error in a manifest is refused with its file and line.
func TestManifestFaults(t *testing.T) {
	const (
		version = "version 1"
		base    = "file base.1.snap seq 1 type b id 0000000000000001"
		second  = "file incr.2.log seq 2 type i id 0000000000000002"
		third   = "file incr.3.log seq 3 type i id 0000000000000003"
	)
	cases := []struct {
		name, content string
		line          int
		why           string
	}{
		{"empty", "", 1, "empty"},
		{"no line end", "version 1\nfile", 2, "does not end"},
		{"blank line", sealed(version, base, "", second), 3, "blank"},
		{"only blank", "\n", 1, "blank"},
		{"no version", sealed(base), 1, "version"},
		{"unknown version", sealed("version 2", base), 1, `format version "2" is unknown`},
		{"no files", sealed(version), 2, "names no file"},
		{"no checksum", version + "\n" + base + "\n" + second + "\n", 3, "checksum"},
		{"changed", strings.Replace(sealed(version, base, second), "seq 2", "seq 4", 1), 4, "checksum"},
		{"long line", sealed(version, "file "+strings.Repeat("a", 2000)+" seq 1 type b id 1"), 2, "longer than"},
		{"odd line", sealed(version, "file base.1.snap seq 1 type"), 2, "pairs"},
		{"double space", sealed(version, "file  base.1.snap seq 1 type b id 1"), 2, "pairs"},
		{"key twice", sealed(version, base+" seq 2"), 2, "twice"},
		{"no file name", sealed(version, "seq 1 type b id 1"), 2, "without a file"},
		{"a path", sealed(version, "file ../x seq 1 type b id 1"), 2, "is a path"},
		{"a windows path", sealed(version, `file a\x seq 1 type b id 1`), 2, "is a path"},
		{"no sequence", sealed(version, "file a type b id 1"), 2, "sequence number"},
		{"bad sequence", sealed(version, "file a seq -1 type b id 1"), 2, "sequence number"},
		{"last sequence", sealed(version, "file a seq 9223372036854775807 type b id 1"), 2, "sequence number"},
		{"no id", sealed(version, "file a seq 1 type b"), 2, "id"},
		{"bad type", sealed(version, "file a seq 1 type h id 1"), 2, "type"},
		{"bad data set", sealed(version, base+" dataset "+strings.Repeat("a", 39)), 2, "data set"},
		{"data set in capitals", sealed(version, base+" dataset "+strings.Repeat("A", 40)), 2, "data set"},
		{"two data sets", sealed(version, base+" dataset "+strings.Repeat("a", 40), second+" dataset "+strings.Repeat("b", 40)), 3, "data set"},
		{"file twice", sealed(version, second, strings.Replace(second, "seq 2", "seq 3", 1)), 3, "twice"},
		{"two bases", sealed(version, base, "file base.2.snap seq 2 type b id 2"), 3, "second base"},
		{"base last", sealed(version, second, "file base.3.snap seq 3 type b id 3"), 3, "a base after an increment"},
		{"not monotonic", sealed(version, third, second), 3, "does not come after"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := persistence.ParseManifest("m", []byte(c.content))
			require.ErrorContains(t, err, fmt.Sprintf("m:%d: ", c.line))
			require.ErrorContains(t, err, c.why)
		})
	}
	require.NoError(t, persistence.ParseManifest("m", []byte(sealed(version, base+" later key", second, third))))
}

// A file that the manifest names but that is missing or has another id is refused; a file that it
// does not name is removed.
func TestManifestAndFiles(t *testing.T) {
	fsys, _, clock := closed(t)
	for _, name := range fsys.Names() {
		if strings.HasSuffix(name, persistence.ManifestName) {
			continue
		}
		gone := fsys.Kill()
		require.NoError(t, gone.Remove(name))
		_, err := open(t, gone, clock, persistence.SyncNo)
		require.ErrorContains(t, err, name)
	}
	other := faultfs.New()
	mustOpen(t, other, persistence.SyncNo).close()
	_, err := open(t, with(fsys, logFile(fsys), other.Content(logFile(other))), clock, persistence.SyncNo)
	require.ErrorContains(t, err, "another file than the manifest means")

	left := fsys.Kill()
	for _, name := range []string{"data/incr.99.log", "data/base.98.snap", "data/cellserver.manifest.tmp", "data/notes.txt"} {
		left.SetContent(name, []byte("left over"))
	}
	left.SetContent("data/incr.97.log", make([]byte, 100))
	var said bytes.Buffer
	o := options(left, clock)
	o.Log = slog.New(slog.NewTextHandler(&said, nil))
	dir, err := persistence.Open(o)
	require.NoError(t, err)
	_, err = dir.Start(persistence.LogOptions{})
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	require.Contains(t, said.String(), "file=incr.97.log bytes=100")
	require.NotContains(t, said.String(), "incr.99.log", "it has no state")
	require.NotContains(t, left.Names(), "data/incr.97.log")
	require.NotContains(t, left.Names(), "data/incr.99.log")
	require.NotContains(t, left.Names(), "data/base.98.snap")
	require.NotContains(t, left.Names(), "data/cellserver.manifest.tmp")
	require.Contains(t, left.Names(), "data/notes.txt")
}

// A manifest that exists but cannot be read is not treated as missing.
func TestManifestThatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.False(t, persistence.Exists(persistence.OS{}, dir))
	require.NoError(t, os.Mkdir(filepath.Join(dir, persistence.ManifestName), 0o700))
	require.True(t, persistence.Exists(persistence.OS{}, dir))
	require.ErrorContains(t, persistence.Check(persistence.OS{}, dir, false, io.Discard), "not a regular file")
}
