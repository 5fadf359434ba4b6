package server_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSnapshotAtTheEnd: a server with save points writes one more snapshot when it
// stops, unless SHUTDOWN says otherwise; without save points only if it does.
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
			dir := t.TempDir()
			f := start(t, "goroutine", "--dir", dir, "--save", row.points)
			c := f.dial()
			require.Equal(t, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:20\r\n", c.do("CL.THROTTLE", "k", "15", "30", "600"))
			c.send("SHUTDOWN " + row.shutdown + "\r\n")
			c.expectEnd()
			f.end()

			f = start(t, "goroutine", "--dir", dir)
			want := ":0\r\n"
			if row.kept {
				want = ":1\r\n"
			}
			require.Equal(t, want, f.dial().do("EXISTS", "k"))
			f.end()
		})
	}
}

// TestStopWithAFaultyLog: a server whose log was given up writes a snapshot when it
// stops, whatever SHUTDOWN says, and ends with an error if it cannot.
func TestStopWithAFaultyLog(t *testing.T) {
	for _, free := range []bool{true, false} {
		dir := t.TempDir()
		f, c, disk := startFull(t, "goroutine", dir)
		require.Contains(t, c.do("SET", "k", "2"), "-MISCONF")
		disk.full.Store(!free)
		c.send("SHUTDOWN NOSAVE\r\n")
		c.expectEnd()
		var err error
		f.ended.Do(func() { err = <-f.done })
		if free {
			require.NoError(t, err)
			require.Contains(t, f.log.String(), "snapshot written")
		} else {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		disk.full.Store(false)
		require.Contains(t, []string{bulk("1"), bulk("2")}, after(t, dir, epoch).dial().do("GET", "k"))
	}
}

// TestSnapshotWithoutADirectory: a snapshot that finds no place for itself is reported
// as one that could not be written.
func TestSnapshotWithoutADirectory(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "goroutine", "--dir", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonlydir"), nil, 0o600))
	c := f.dial()
	require.Contains(t, c.do("SAVE"), "not a directory")
	require.Equal(t, "err", c.info("rdb_last_bgsave_status"))
	require.Contains(t, f.log.String(), "a snapshot could not be written")
	require.NoError(t, os.Remove(filepath.Join(dir, "appendonlydir")))
	require.Equal(t, "+Background saving started\r\n", c.do("BGSAVE"))
	eventually(t, "saved", func() bool { return c.info("rdb_last_bgsave_status") == "ok" })
}
