package manager_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestSnapshotAtTheEnd: a server with save points writes one more snapshot when it stops, unless
// SHUTDOWN forbids it. Without save points it only does so if SHUTDOWN demands it.
func TestSnapshotAtTheEnd(t *testing.T) {
	for _, row := range []struct {
		points, shutdown string
		kept             bool
	}{
		{"900 1", "", true},
		{"900 1", "NOSAVE", false},
		{"", "", false},
		{"", "SAVE", true},
	} {
		t.Run(row.points+" "+row.shutdown, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				f := w.Start("--save", row.points)
				c := f.Dial()
				require.Equal(t, inproc.Five(0, 16, 15, -1, 20), c.Do("CL.THROTTLE", "k", "15", "30", "600"))
				c.Send("SHUTDOWN " + row.shutdown + "\r\n")
				c.ExpectEnd()
				require.NoError(t, f.Ended())

				want := ":0\r\n"
				if row.kept {
					want = ":1\r\n"
				}
				require.Equal(t, want, w.StartOn(f.Disk).Dial().Do("EXISTS", "k"))
			})
		})
	}
}

// TestStopWithAFaultyLog: a server whose log was given up writes a snapshot when it stops, even
// with SHUTDOWN NOSAVE, and ends with an error if it cannot.
func TestStopWithAFaultyLog(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for _, free := range []bool{true, false} {
			f := w.Start("--appendonly", "yes")
			c := f.Dial()
			require.Equal(t, inproc.OK, c.Do("SET", "k", "1"))
			f.FillDisk(true)
			require.Contains(t, c.Do("SET", "k", "2"), "-MISCONF")
			f.FillDisk(!free)
			c.Send("SHUTDOWN NOSAVE\r\n")
			c.ExpectEnd()
			err := f.Ended()
			if free {
				require.NoError(t, err)
				require.Contains(t, f.Log.String(), "snapshot written")
			} else {
				require.ErrorIs(t, err, syscall.ENOSPC)
			}
			f.FillDisk(false)
			require.Contains(t, []string{inproc.Bulk("1"), inproc.Bulk("2")}, w.StartOn(f.Disk, "--appendonly", "yes").Dial().Do("GET", "k"))
		}
	})
}

// TestSnapshotWithoutADirectory: a snapshot whose directory cannot be created is reported as
// failed.
func TestSnapshotWithoutADirectory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		dir := t.TempDir()
		f := w.StartWith(func(o *server.Options) { o.FS = nil }, "--dir", dir) // faultfs has no file in place of a directory
		require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonlydir"), nil, 0o600))
		c := f.Dial()
		require.Contains(t, c.Do("SAVE"), "not a directory")
		require.Equal(t, "err", c.Info("rdb_last_bgsave_status"))
		require.Contains(t, f.Log.String(), "a snapshot could not be written")
		require.NoError(t, os.Remove(filepath.Join(dir, "appendonlydir")))
		require.Equal(t, "+Background saving started\r\n", c.Do("BGSAVE"))
		w.Settle()
		require.Equal(t, "ok", c.Info("rdb_last_bgsave_status"), "saved")
	})
}
