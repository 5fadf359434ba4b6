package server_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReadyzSaysMisconfWhileChangesAreRefused, and the metrics say it, too.
func TestReadyzSaysMisconfWhileChangesAreRefused(t *testing.T) {
	disk := &fullFS{}
	o, end := operateWith(t, t.TempDir(), disk, "--appendonly", "yes")
	c := o.dial()
	require.Equal(t, okReply, c.do("SET", "k", "1"))
	require.Equal(t, "1", o.series()["cellserver_persistence_ok"])
	disk.full.Store(true)
	eventually(t, "changes are refused", func() bool { return c.do("SET", "k", "2") != okReply })
	require.Contains(t, c.do("SET", "k", "2"), "-MISCONF")
	status, body := o.get("/readyz", "", "")
	require.Equal(t, 503, status)
	require.Equal(t, "misconf\n", body)
	status, _ = o.get("/healthz", "", "")
	require.Equal(t, 200, status, "a restart would not help")
	require.Equal(t, "0", o.series()["cellserver_persistence_ok"])
	disk.full.Store(false)
	eventually(t, "it has recovered", func() bool {
		o.clock.Advance(time.Second)
		return c.do("SET", "k", "3") == okReply
	})
	status, body = o.get("/readyz", "", "")
	require.Equal(t, 200, status, body)
	end()
}

// TestSyncAgeGrowsWhileAnFsyncHangs: in the metrics, and in the check of the report.
func TestSyncAgeGrowsWhileAnFsyncHangs(t *testing.T) {
	disk := &hungFS{gate: make(chan struct{})}
	t.Cleanup(disk.release)
	o, end := operateWith(t, t.TempDir(), disk, "--appendonly", "yes", "--appendfsync", "everysec")
	c := o.dial()
	age := func() float64 {
		seconds, err := strconv.ParseFloat(o.series()["cellserver_sync_age_seconds"], 64)
		require.NoError(t, err)
		return seconds
	}
	require.Zero(t, age())
	disk.hangs.Store(true)
	eventually(t, "an fsync hangs", func() bool {
		c.do("INCR", "k")
		return disk.waiting.Load() > 0
	})
	eventually(t, "its age is shown", func() bool { return age() > 0 })
	disk.release()
	disk.hangs.Store(false)
	eventually(t, "it has recovered", func() bool { return age() == 0 })
	end()
}
