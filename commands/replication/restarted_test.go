package replication_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestRestartedReplicaAsksForWhatItMissed: a replica that is restarted with the same primary gets
// a partial resynchronization. One that was a primary in between gets a full one.
func TestRestartedReplicaAsksForWhatItMissed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start()
		syncs := func(full, partial int64) {
			t.Helper()
			is, part := primary.Syncs()
			require.Equal(t, []int64{full, partial}, []int64{is, part})
		}
		following := []string{"--appendonly", "yes", "--replicaof", primary.Host + " " + strconv.Itoa(inproc.Port)}
		c := primary.Dial()
		fields := []string{"HSET", "h"}
		for i := range 1000 { // so many that PERSIST replicates none of them
			fields = append(fields, strconv.Itoa(i), "v")
		}
		c.Do(fields...)
		require.Equal(t, ":1\r\n", c.Do("PEXPIRE", "h", "1000"))

		replica := w.Start(following...)
		replica.AwaitLink(primary)
		w.Until("the files have the state", 3*time.Millisecond, time.Minute, func() bool {
			return strings.Contains(replica.Log.String(), "snapshot written")
		})
		require.NoError(t, replica.Stop())
		syncs(1, 0)
		require.Equal(t, ":1\r\n", c.Do("PERSIST", "h"))
		w.Advance(2 * time.Second) // otherwise the key would have expired
		require.Contains(t, c.Do("CL.THROTTLE", "limit", "15", "30", "60"), ":0\r\n:16\r\n:15\r\n")

		replica = w.StartOn(replica.Disk, "--appendonly", "yes", "--replicaof", w.Host()+" 1") // an address at which no server listens
		replica.Keyspace().Sweep(1000)
		replica.Follow(primary)
		primary.Agree(replica)
		syncs(1, 1)
		require.NoError(t, replica.Stop())

		alone := w.StartOn(replica.Disk, "--appendonly", "yes")
		require.Equal(t, inproc.OK, alone.Dial().Do("SET", "own", "v"))
		require.NoError(t, alone.Stop())
		replica = w.StartOn(replica.Disk, following...)
		replica.AwaitLink(primary)
		primary.Agree(replica)
		syncs(2, 1)
	})
}
