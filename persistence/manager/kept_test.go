package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// startAgain starts a server on the disk of another one, which is killed now, at the first instant
// of the clock.
func startAgain(w *inproc.World, died *inproc.Node) *inproc.Node {
	return w.StartWith(func(o *server.Options) { o.Clock, o.FS = clocktest.New(inproc.Epoch), died.Left() }, "--appendonly", "yes")
}

// TestAutomaticRewrite: a log that has grown far enough beyond its base is replaced by a snapshot,
// as soon as the options say so and not before.
func TestAutomaticRewrite(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, _ := w.StartStepped("--appendonly", "yes", "--auto-aof-rewrite-min-size", "1000")
		c := f.Dial()
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "auto-aof-rewrite-percentage", "0"))
		for range 100 {
			c.Do("CL.THROTTLE", "k", "1000", "30", "600")
		}
		require.Equal(t, "0", c.Info("aof_base_size"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "auto-aof-rewrite-percentage", "100"))
		w.Until("rewritten", time.Second, time.Minute, func() bool { return c.Info("aof_base_size") != "0" })
		require.Equal(t, inproc.Five(0, 1001, 900, -1, 2020), c.Do("CL.THROTTLE", "k", "1000", "30", "600"))
		require.NoError(t, f.Stop())
		require.Equal(t, 1, strings.Count(f.Log.String(), "snapshot written"))
		require.Equal(t, inproc.Five(0, 1001, 900, -1, 2020), startAgain(w, f).Dial().Do("CL.THROTTLE", "k", "1000", "30", "600", "0"))
	})
}

// TestSavePoints: a snapshot is written when a save point is reached, after the number of changes
// that it names. Without a log a restart only finds the snapshot.
func TestSavePoints(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, _ := w.StartStepped("--save", "3600 1 1 5")
		c := f.Dial()
		for range 4 {
			c.Do("CL.THROTTLE", "k", "15", "30", "600")
		}
		require.Equal(t, "4", c.Info("rdb_changes_since_last_save"))
		c.Do("CL.THROTTLE", "k", "15", "30", "600")
		w.Until("saved", time.Second, time.Minute, func() bool { return c.Info("rdb_changes_since_last_save") == "0" })
		require.Equal(t, inproc.Five(0, 16, 11, -1, 100), startAgain(w, f).Dial().Do("CL.THROTTLE", "k", "15", "30", "600", "0"))
	})
}
