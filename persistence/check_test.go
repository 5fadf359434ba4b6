package persistence_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// check-aof finds errors that only replaying shows: a list without some of its values, which
// cutting cannot repair, and a patch that does not fit its value, which it can.
func TestCheckReplays(t *testing.T) {
	build := func(record []byte) (*faultfs.FS, *clocktest.Clock) {
		s := mustOpen(t, faultfs.New(), persistence.SyncNo)
		require.NoError(t, s.handle.Put(0, []byte("before"), entry.String, []byte("v"), entry.NoExpiry))
		s.log.Append(record, nil, begin)
		require.NoError(t, s.handle.Put(0, []byte("after"), entry.String, []byte("v"), entry.NoExpiry))
		s.close()
		return s.fs, s.clock
	}
	var out bytes.Buffer
	holed, clock := build(stretch("list", 3, entry.NoExpiry))
	for _, fix := range []bool{false, true} {
		out.Reset()
		require.ErrorIs(t, persistence.Check(holed, "data", fix, &out), persistence.ErrDamaged)
		require.Contains(t, out.String(), "a list of database 0 lacks values")
		require.NotContains(t, out.String(), "fixed")
		require.NotContains(t, out.String(), "the log is whole")
	}
	_, err := open(t, holed, clock, persistence.SyncNo)
	require.Error(t, err)

	out.Reset()
	hash := []byte{66, 0, 1, 'h', byte(entry.Hash), 255, 255, 255, 255, 255, 255, 255, 127, 1, 9} // an invalid delta
	odd, clock := build(hash)
	require.ErrorIs(t, persistence.Check(odd, "data", false, &out), persistence.ErrDamaged)
	require.Contains(t, out.String(), "incr.1.log: offset ")
	require.Contains(t, out.String(), "record 2: ")
	_, err = open(t, odd.Kill(), clock, persistence.SyncNo)
	require.Error(t, err)
	require.NoError(t, persistence.Check(odd, "data", true, &out))
	out.Reset()
	require.NoError(t, persistence.Check(odd, "data", false, &out))
	s, err := open(t, odd, clock, persistence.SyncNo)
	require.NoError(t, err)
	require.Contains(t, s.state(), "before")
	require.NotContains(t, s.state(), "after")
}

// The error for a file that cannot be cut does not say that it can, and dump writes what comes
// before the damage.
func TestDamageThatCannotBeCut(t *testing.T) {
	fsys, _, clock := closed(t)
	for _, name := range fsys.Names() {
		if !strings.HasSuffix(name, ".snap") && name != logFile(fsys) {
			continue
		}
		content := fsys.Content(name)
		at := len(content) / 2
		if strings.HasSuffix(name, ".log") {
			at = 30 // the header
		}
		content[at] ^= 1
		broken := with(fsys, name, content)
		_, err := open(t, broken, clock, persistence.SyncNo)
		require.ErrorContains(t, err, "cellserver dump")
		require.NotContains(t, err.Error(), "--fix")
		require.ErrorContains(t, persistence.Check(broken.Kill(), "data", true, io.Discard), name)
	}
	name := logFile(fsys)
	content := fsys.Content(name)
	content[len(content)-100] ^= 1
	var whole, before bytes.Buffer
	require.NoError(t, persistence.Dump(fsys, "data", &whole))
	require.ErrorContains(t, persistence.Dump(with(fsys, name, content), "data", &before), "was durable")
	require.Greater(t, before.Len(), whole.Len()/2)
	// The blocks of a base come in any order.
	require.Subset(t, strings.Split(whole.String(), "\n"), strings.Split(before.String(), "\n"))
}

// A directory that has lost its manifest is not taken for an empty one, whose files would be
// removed.
func TestLostManifestIsRefused(t *testing.T) {
	fsys, _, clock := closed(t)
	require.NoError(t, fsys.Remove("data/"+persistence.ManifestName))
	require.True(t, persistence.Exists(fsys, "data"))
	before := fsys.Names()
	_, err := open(t, fsys, clock, persistence.SyncNo)
	require.ErrorContains(t, err, "no cellserver.manifest")
	require.Equal(t, before, fsys.Names())

	// A crash during a first start, or during a first snapshot, leaves such files.
	first := faultfs.New()
	mustOpen(t, first, persistence.SyncNo)
	first = first.Kill()
	require.NoError(t, first.Remove("data/"+persistence.ManifestName))
	first.SetContent("data/base.1.snap", []byte("anything"))
	require.False(t, persistence.Exists(first, "data"))
	mustOpen(t, first, persistence.SyncNo).close()
}

// TestCheckLeavesNothing: Check leaves nothing in a directory that is not a server's.
func TestCheckLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, persistence.Check(persistence.OS{}, dir, true, io.Discard), "holds no")
	require.ErrorContains(t, persistence.Dump(persistence.OS{}, dir, io.Discard), "holds no")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Error(t, persistence.Check(persistence.OS{}, filepath.Join(dir, "none"), false, io.Discard))
	require.NoDirExists(t, filepath.Join(dir, "none"))
}

// A backup on a read-only medium can be checked.
func TestCheckOnAReadOnlyDisk(t *testing.T) {
	fsys, _, _ := closed(t)
	fsys.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == "open" || c.Op == "list" || c.Op == "close" {
			return nil
		}
		return &os.PathError{Op: c.Op, Path: c.Name, Err: syscall.EROFS}
	})
	var out bytes.Buffer
	require.NoError(t, persistence.Check(fsys, "data", false, &out))
	require.Contains(t, out.String(), "the log is whole")
	require.NoError(t, persistence.Dump(fsys, "data", &out))
}

// Creating a file does not follow a symbolic link.
func TestCreateFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	if err := os.Symlink(victim, filepath.Join(dir, "incr.1.log")); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	_, err := persistence.OS{}.Create(filepath.Join(dir, "incr.1.log"))
	require.Error(t, err)
	content, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
}

// TestDumpOfNoCollection: Dump returns an error for bytes that are not a collection: the checksum does not prove that a
// server has written them.
func TestDumpOfNoCollection(t *testing.T) {
	for _, kind := range []entry.Kind{entry.Hash, entry.SortedSet, entry.List, entry.Set} {
		s := mustOpen(t, faultfs.New(), persistence.SyncNo)
		s.log.Append([]byte{byte(kind), 0, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 127, 3, 200, 9, 9}, nil, begin)
		s.close()
		require.Error(t, persistence.Dump(s.fs, "data", io.Discard))
	}
}

// The error for an effect on a database that does not exist names its file and the option.
func TestUnknownDatabaseIsNamed(t *testing.T) {
	s := mustOpen(t, faultfs.New(), persistence.SyncNo)
	s.log.Append([]byte{byte(entry.String), 9, 1, 'k', 255, 255, 255, 255, 255, 255, 255, 127, 0}, nil, begin)
	s.close()
	_, err := open(t, s.fs, s.clock, persistence.SyncNo)
	require.ErrorContains(t, err, "data/incr.1.log: offset ")
	require.ErrorContains(t, err, "the option databases")
}

// TestCheckOfATornLogIsNoSuccess: check-aof reports what a server would cut as an error and changes
// nothing. Once the log has been cut it succeeds.
func TestCheckOfATornLogIsNoSuccess(t *testing.T) {
	fsys, _, clock := closed(t)
	name := logFile(fsys)
	torn := with(fsys, name, fsys.Content(name)[:len(fsys.Content(name))-3])
	before := string(torn.Content(name))
	var out bytes.Buffer
	require.ErrorIs(t, persistence.Check(torn, "data", false, &out), persistence.ErrTorn)
	require.Contains(t, out.String(), "a server would cut it: ")
	require.Equal(t, before, string(torn.Content(name)))
	require.NoError(t, persistence.Check(torn, "data", true, &out))
	out.Reset()
	require.NoError(t, persistence.Check(torn, "data", false, &out))
	require.Contains(t, out.String(), "the log is whole")
	_, err := open(t, torn, clock, persistence.SyncNo)
	require.NoError(t, err)
}
