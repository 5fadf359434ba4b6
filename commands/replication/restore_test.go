package replication_test

import (
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/persistence"
)

// restoreOn returns a disk with the files that a restore makes from the backup.
func restoreOn(t *testing.T, backup *faultfs.FS) *faultfs.FS {
	t.Helper()
	dir, err := filepath.Abs("appendonlydir")
	require.NoError(t, err)
	disk := faultfs.New()
	const from = "/backup"
	for _, name := range backup.Names() {
		if base := filepath.Base(name); base != "cellserver.lock" {
			disk.SetContent(filepath.Join(from, base), backup.Content(name))
		}
	}
	require.NoError(t, persistence.Restore(disk, from, dir, io.Discard))
	return disk
}

// TestRestoreBesideAReplica: after a restore of the primary, its replica keeps the newer state
// until the operator makes it follow. Policies are restored like keys.
func TestRestoreBesideAReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		options := []string{"--appendonly", "yes", "--appendfsync", "always"}
		primary := w.Start(options...)
		charge(t, primary, 3)
		require.Equal(t, inproc.OK, primary.Dial().Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "10", "1", "1"))
		backup := primary.Left()
		replica := w.Start("--appendonly", "yes", "--replicaof", primary.Host+" "+strconv.Itoa(inproc.Port))
		replica.AwaitLink(primary)
		c := primary.Dial()
		for i := range 20 {
			require.Equal(t, inproc.OK, c.Do("SET", "later"+strconv.Itoa(i), "1"))
		}
		require.Equal(t, ":1\r\n", c.Do("RL.POLICY", "DEL", "api"))
		primary.Agree(replica)
		newer := len(replica.State())

		require.NoError(t, primary.Stop())
		primary.Disk = restoreOn(t, backup)
		primary.Restart()
		require.Contains(t, primary.Log.String(), "this server was restored from a backup")
		refusing(w, replica)
		require.Len(t, replica.State(), newer)
		require.Contains(t, primary.Dial().Do("RL.POLICY", "GET", "api"), "TB 10 1 1")

		d := replica.Dial()
		require.Equal(t, inproc.OK, d.Do("CONFIG", "SET", "repl-refuse-empty", "no"))
		w.Until("it follows", 3*time.Millisecond, time.Minute, func() bool {
			return replica.Replication()["master_link_status"] == "up"
		})
		primary.Agree(replica)
		require.NotContains(t, strings.Join(keysOf(replica), " "), "later")
		require.Equal(t, primary.Replication()["cell_data_set"], replica.Replication()["cell_data_set"])
	})
}

// keysOf returns the keys of a server.
func keysOf(n *inproc.Node) (keys []string) {
	for key := range n.State() {
		keys = append(keys, key)
	}
	return keys
}

// TestRestoreIsNotUndone: a replica was promoted while the primary was restored, and Sentinel
// orders the primary to follow it. The primary keeps the restored state, over restarts, until one
// of the two is promoted.
func TestRestoreIsNotUndone(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		options := []string{"--appendonly", "yes", "--appendfsync", "always"}
		primary := w.Start(options...)
		charge(t, primary, 3)
		backup := primary.Left()
		replica := w.StartAdmin("--replicaof", primary.Host+" "+strconv.Itoa(inproc.Port))
		replica.AwaitLink(primary)
		require.Equal(t, inproc.OK, primary.Dial().Do("SET", "later", "1"))
		primary.Agree(replica.Node)

		require.NoError(t, primary.Stop())
		replica.Promote()
		primary.Disk = restoreOn(t, backup)
		primary.Restart()
		order := func() {
			require.Equal(t, inproc.OK, primary.Dial().Do("REPLICAOF", replica.Host, strconv.Itoa(inproc.Port)))
			w.Until("refused", 3*time.Millisecond, time.Minute, func() bool {
				return strings.Contains(primary.Replication()["cell_repl_error"], "than the backup that this server was restored from")
			})
			require.Len(t, primary.State(), 3)
		}
		order()
		require.NoError(t, primary.Stop())
		primary.Restart() // as a primary again
		order()
		require.NoError(t, primary.Stop())
		primary.Restart("--replicaof", replica.Host+" "+strconv.Itoa(inproc.Port)) // as CONFIG REWRITE writes it
		w.Until("refused", 3*time.Millisecond, time.Minute, func() bool {
			return strings.Contains(primary.Replication()["cell_repl_error"], "than the backup that this server was restored from")
		})
		require.Contains(t, replica.State(), "0/later")

		primary.Promote()
		require.Equal(t, inproc.OK, replica.Dial().Do("REPLICAOF", primary.Host, strconv.Itoa(inproc.Port)))
		w.Until("it follows", 3*time.Millisecond, time.Minute, func() bool {
			return replica.Replication()["master_link_status"] == "up"
		})
		primary.Agree(replica.Node)
		require.Len(t, replica.State(), 3)
		require.Contains(t, primary.Dial().Do("CL.THROTTLE", "k0", "0", "1", "3600"), ":1\r\n")
	})
}
