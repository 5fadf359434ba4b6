package replication_test

import (
	"fmt"
	"hash/crc32"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
)

// charge uses up the limits of n keys.
func charge(t *testing.T, s *inproc.Node, n int) {
	t.Helper()
	c := s.Dial()
	defer c.Close()
	for i := range n {
		require.Equal(t, inproc.Five(0, 1, 0, -1, 3600), c.Do("CL.THROTTLE", "k"+strconv.Itoa(i), "0", "1", "3600"))
	}
}

// refusing waits until a replica refuses the data set of its primary.
func refusing(w *inproc.World, replica *inproc.Node) {
	w.Until("refused", 3*time.Millisecond, time.Minute, func() bool {
		return strings.Contains(replica.Replication()["cell_repl_error"], "has another data set")
	})
}

// TestEmptiedPrimaryWithAKeyIsRefused: a primary restarts without files, and clients call it
// before its replica reconnects. The replica keeps the charged limits, and INFO reports the
// refusal.
func TestEmptiedPrimaryWithAKeyIsRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start()
		replica := w.StartAdmin("--replicaof", primary.Host+" "+strconv.Itoa(inproc.Port))
		replica.AwaitLink(primary)
		charge(t, primary, 100)
		primary.Agree(replica.Node)
		set := replica.Replication()["cell_data_set"]
		require.Equal(t, primary.Replication()["cell_data_set"], set)
		status, _ := replica.Get("/readyz", "", "")
		require.Equal(t, 200, status)

		primary.Kill()
		primary.Restart()
		charge(t, primary, 1)
		refusing(w, replica.Node)
		c := primary.Dial()
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "min-replicas-to-write", "1"))
		w.Advance(1500 * time.Millisecond) // the replica retries each second
		require.Contains(t, c.Do("CL.THROTTLE", "new", "0", "1", "3600"), "-NOREPLICAS", "the replica does not count")
		require.Len(t, replica.State(), 100)
		w.Advance(5 * time.Minute)
		down, err := strconv.Atoi(replica.Replication()["master_link_down_since_seconds"])
		require.NoError(t, err)
		require.LessOrEqual(t, down, 2, "Sentinel may promote it")
		require.NotEqual(t, set, primary.Replication()["cell_data_set"])
		require.Contains(t, replica.Log.String(), "has another data set")
		status, body := replica.Get("/readyz", "", "")
		require.Equal(t, 503, status)
		require.Equal(t, "primary-refused\n", body)
		require.Contains(t, replica.Dial().Do("RL.REPORT", "OVERVIEW"), "the primary has another data set and is refused")
		require.Equal(t, "1", replica.Series()["cellserver_primary_refused"])

		replica.Promote()
		require.Equal(t, set, replica.Replication()["cell_data_set"])
		status, _ = replica.Get("/readyz", "", "")
		require.Equal(t, 200, status)
		d := replica.Dial()
		for i := range 100 {
			require.Contains(t, d.Do("CL.THROTTLE", "k"+strconv.Itoa(i), "0", "1", "3600"), ":1\r\n", "no limit admits again")
		}
		primary.Follow(replica.Node)
		replica.Agree(primary)
		require.Equal(t, set, primary.Replication()["cell_data_set"])
	})
}

// TestDataSetIsKept: the ID is kept in the log, in a snapshot, in the snapshot of a full
// resynchronization, and by a replica that has learned it after its files were written. An empty
// server begins a new data set.
func TestDataSetIsKept(t *testing.T) {
	for name, options := range map[string][]string{
		"log": {"--appendonly", "yes"}, "snapshot": {"--save", "3600 1"},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				primary, replica := w.Start(options...), w.Start(options...)
				own := replica.Replication()["cell_data_set"]
				set := primary.Replication()["cell_data_set"]
				require.NotEqual(t, own, set)
				charge(t, primary, 3)
				replica.Follow(primary)
				primary.Agree(replica)
				require.Equal(t, inproc.OK, primary.Dial().Do("SAVE"))
				for _, n := range []*inproc.Node{primary, replica} {
					w.Until("saved", time.Millisecond, time.Minute, func() bool { return n.Dial().Do("SAVE") == inproc.OK })
					n.Kill()
					n.Restart()
					require.Len(t, n.State(), 3)
					require.Equal(t, set, n.Replication()["cell_data_set"])
				}
				require.Equal(t, inproc.OK, primary.Dial().Do("FLUSHALL"))
				require.NoError(t, primary.Stop())
				primary.Restart()
				require.Empty(t, primary.State())
				require.Equal(t, set, primary.Replication()["cell_data_set"], "that was a change of it")
				require.NoError(t, primary.Stop())
				primary.Disk = faultfs.New()
				primary.Restart()
				require.NotContains(t, []string{"", set, own}, primary.Replication()["cell_data_set"])
			})
		})
	}
}

// TestRestartedReplicaKnowsItsDataSet: the files of a replica have the ID even after a crash,
// whatever its primary is by then.
func TestRestartedReplicaKnowsItsDataSet(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start()
		replica := w.Start("--appendonly", "yes", "--replicaof", primary.Host+" "+strconv.Itoa(inproc.Port))
		replica.AwaitLink(primary)
		charge(t, primary, 3)
		primary.Agree(replica)
		w.Until("the files have the state", 3*time.Millisecond, time.Minute, func() bool {
			return strings.Contains(replica.Log.String(), "snapshot written")
		})
		w.Advance(time.Second)
		replica.Kill()
		primary.Kill()
		primary.Restart()
		charge(t, primary, 1)
		replica.Restart()
		refusing(w, replica)
		require.Len(t, replica.State(), 3)
	})
}

// forget turns the manifest of a disk into that of a version without data sets.
func forget(t *testing.T, disk *faultfs.FS) {
	t.Helper()
	for _, name := range disk.Names() {
		if filepath.Base(name) != "cellserver.manifest" {
			continue
		}
		text := regexp.MustCompile(` dataset [0-9a-f]{40}|checksum .*\n`).ReplaceAll(disk.Content(name), nil)
		sum := crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))
		require.NotEqual(t, len(disk.Content(name)), len(text)+len("checksum 12345678\n"), "it names one")
		disk.SetContent(name, fmt.Appendf(text, "checksum %08x\n", sum))
		return
	}
	t.Fatal("there is no manifest")
}

// TestDataSetOfOldFiles: a primary whose files have no ID takes the ID of its replica, or draws
// one. Its files have the ID from then on.
func TestDataSetOfOldFiles(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start("--appendonly", "yes")
		charge(t, primary, 3)
		require.NoError(t, primary.Stop())
		forget(t, primary.Disk)
		primary.Restart()
		require.Empty(t, primary.Replication()["cell_data_set"])
		replica := w.Start("--appendonly", "yes")
		replica.Follow(primary)
		primary.Agree(replica)
		set := primary.Replication()["cell_data_set"]
		require.Len(t, set, 40)
		require.Equal(t, set, replica.Replication()["cell_data_set"])
		w.Advance(2 * time.Second)
		primary.Kill()
		primary.Restart()
		require.Equal(t, set, primary.Replication()["cell_data_set"])
	})
}

// TestTzdataIsSaidByReplicas: an invalid release is ignored, like other unknown values of capa.
func TestTzdataIsSaidByReplicas(t *testing.T) {
	for said, want := range map[string]string{
		"tzdata:2025c": "2025c", "tzdata:": "", "tzdata:2025C": "", "tzdata:20 25": "", "tzdata": "", "tzdata:" + strings.Repeat("9", 17): "",
	} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			n := start(w)
			c := n.Dial()
			require.Equal(t, inproc.OK, c.Do("REPLCONF", "capa", "cell1", "capa", said))
			require.Contains(t, c.Do("PSYNC", "?", "-1"), "+FULLRESYNC")
			require.Equal(t, want, n.double.Calls()[0].Tzdata)
		})
	}
}

// TestDataSetIsSaidByReplicas: an invalid ID is ignored, like other unknown values of capa.
func TestDataSetIsSaidByReplicas(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 3)[:40]
	for said, want := range map[string]string{
		"data:" + id: id, "data:?": "?", "data:": "", "data:" + id[1:]: "", "data:" + id + "0": "", "data:" + strings.ToUpper(id): "",
		"data:" + strings.Repeat("?", 40): "", "data": "", id: "", "data:" + strings.Repeat("a", 1<<20): "",
	} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			n := start(w)
			c := n.Dial()
			require.Equal(t, inproc.OK, c.Do("REPLCONF", "capa", "cell1", "capa", said))
			require.Contains(t, c.Do("PSYNC", "?", "-1"), "+FULLRESYNC")
			require.Equal(t, want, n.double.Calls()[0].DataSet)
		})
	}
}
