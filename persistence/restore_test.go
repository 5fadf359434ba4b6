package persistence_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// dataSetOf returns the data set in the manifest of a directory.
func dataSetOf(t *testing.T, fsys *faultfs.FS, path string) persistence.DataSet {
	t.Helper()
	o := options(fsys.Kill(), clocktest.New(begin))
	o.Path = path
	dir, err := persistence.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	return dir.DataSet()
}

// stateIn returns the state that a server loads from a directory.
func stateIn(t *testing.T, fsys *faultfs.FS, path string) string {
	t.Helper()
	ours := faultfs.New()
	for _, name := range fsys.Names() {
		if rest, ok := strings.CutPrefix(name, path+"/"); ok {
			ours.SetContent("data/"+rest, fsys.Content(name))
		}
	}
	s := mustOpen(t, ours, persistence.SyncNo)
	defer s.close()
	return s.state()
}

// TestRestoreBeginsADataSet: the state is that of the backup, and the data set is a new one, which
// rewrites and restarts keep as long as it is that of memory.
func TestRestoreBeginsADataSet(t *testing.T) {
	fsys, state := backedUp(t)
	before := dataSetOf(t, fsys, "data")
	var out strings.Builder
	require.NoError(t, persistence.Restore(fsys, "data", "new", &out))
	require.Contains(t, out.String(), "the log is whole")
	set := dataSetOf(t, fsys, "new")
	require.True(t, persistence.IsHistory(set.ID))
	require.True(t, set.Restored)
	require.NotEqual(t, before.ID, set.ID)
	require.Equal(t, state, stateIn(t, fsys, "new"))
	require.Equal(t, state, stateIn(t, fsys, "data"), "the backup stays")
	require.Equal(t, before, dataSetOf(t, fsys, "data"))

	has := set
	o := options(fsys, clocktest.New(begin))
	o.Path, o.DataSet = "new", func() persistence.DataSet { return has }
	dir, err := persistence.Open(o)
	require.NoError(t, err)
	_, err = dir.Start(persistence.LogOptions{Policy: persistence.SyncNo})
	require.NoError(t, err)
	require.Equal(t, set, dataSetOf(t, fsys, "new"))
	has = persistence.DataSet{ID: set.ID}
	require.NoError(t, dir.KeepDataSet())
	require.Equal(t, has, dataSetOf(t, fsys, "new"))
	require.NoError(t, dir.Close())
}

// TestRestoreTakesATornEnd: a copy of a running server's log may end within a record.
func TestRestoreTakesATornEnd(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	s.handle.Refresh()
	require.NoError(t, s.handle.Put(0, []byte("a"), entry.String, []byte("v"), entry.NoExpiry))
	require.NoError(t, s.log.Sync())
	state, name := s.state(), logFile(fsys)
	s.close()
	content := fsys.Content(name)
	whole := len(content)
	torn := with(fsys, name, append(content[:whole-41:whole-41], "\x30\x00\x00\x00torn"...)) // instead of the end record
	require.NoError(t, persistence.Restore(torn, "data", "new", io.Discard))
	require.Equal(t, state, stateIn(t, torn, "new"))
}

// TestRestoreRefuses damaged backups, directories without one, and targets with state.
func TestRestoreRefuses(t *testing.T) {
	fsys, _ := backedUp(t)
	name := logFile(fsys)
	content := fsys.Content(name)
	content[persistence.HeaderSize+20] ^= 1
	for _, c := range []struct {
		fsys           *faultfs.FS
		from, to, want string
	}{
		{with(fsys, name, content), "data", "new", "the backup: the directory is damaged"},
		{fsys, "none", "new", "the backup: none holds no cellserver.manifest"},
		{fsys, "data", "data", "data is the backup itself"},
		{fsys, "data", "./data/", "is the backup itself"},
		{with(fsys, "new/incr.1.log", nil), "data", "new", "new holds incr.1.log: move the files of the server to another directory first"},
		{with(fsys, "new/cellserver.manifest", nil), "data", "new", "new holds cellserver.manifest"},
	} {
		before := c.fsys.Names()
		require.ErrorContains(t, persistence.Restore(c.fsys, c.from, c.to, io.Discard), c.want)
		added := slices.DeleteFunc(c.fsys.Names(), func(name string) bool {
			return slices.Contains(before, name) || strings.HasSuffix(name, ".lock")
		})
		require.Empty(t, added)
	}
}

// TestRestoreThatFails leaves nothing with which a server starts, wherever it fails or the power
// fails.
func TestRestoreThatFails(t *testing.T) {
	fsys, state := backedUp(t)
	whole := fsys.Kill()
	require.NoError(t, persistence.Restore(whole, "data", "new", io.Discard))
	calls := len(whole.Calls())
	broken := errors.New("broken")
	for n := 1; n <= calls; n++ {
		disk := fsys.Kill()
		disk.Inject(func(call int, _ faultfs.Call) error {
			if call == n {
				return broken
			}
			return nil
		})
		err := persistence.Restore(disk, "data", "new", io.Discard)
		left := disk.Kill()
		o := options(left.Kill(), clocktest.New(begin))
		o.Path = "new"
		dir, opened := persistence.Open(o)
		if opened == nil && !dir.Empty() || err == nil { // the manifest was written before the fault
			require.NoError(t, dir.Close())
			require.Equal(t, state, stateIn(t, left, "new"), "call %d", n)
		}
	}
}
