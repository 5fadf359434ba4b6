package server_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// number is a field of INFO that is a number.
func (c *client) number(field string) float64 {
	c.t.Helper()
	n, err := strconv.ParseFloat(c.info(field), 64)
	require.NoError(c.t, err)
	return n
}

// TestInfoCountsReadsAndWrites: one of each for a command that waits for its reply.
func TestInfoCountsReadsAndWrites(t *testing.T) {
	for _, kind := range transports() {
		c := start(t, kind).dial()
		reads, writes := c.number("total_reads_processed"), c.number("total_writes_processed")
		for range 100 {
			c.do("PING")
		}
		require.GreaterOrEqual(t, c.number("total_reads_processed")-reads, 100.0)
		require.GreaterOrEqual(t, c.number("total_writes_processed")-writes, 99.0, "the last may not be counted yet")
	}
}

// TestInfoShowsBytesPerSecond, of what was received and of what was sent.
func TestInfoShowsBytesPerSecond(t *testing.T) {
	for _, kind := range transports() {
		c := start(t, kind).dial()
		for _, field := range []string{"instantaneous_input_kbps", "instantaneous_output_kbps"} {
			eventually(t, field, func() bool { return c.number(field) > 0 })
		}
	}
}

// TestInfoShowsTheLargestBufferOfAClient, of the last seconds.
func TestInfoShowsTheLargestBufferOfAClient(t *testing.T) {
	const size = 300_000
	for _, kind := range transports() {
		f := start(t, kind)
		sender, reader, c := f.dial(), f.dial(), f.dial()
		c.do("SET", "long", strings.Repeat("v", 1<<20))
		sender.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$400000\r\n" + strings.Repeat("v", size))
		reader.send(strings.Repeat("*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n", 50))
		reader.send(strings.Repeat("*2\r\n$4\r\nECHO\r\n$1000\r\n"+strings.Repeat("e", 1000)+"\r\n", 1000))
		eventually(t, "buffers are shown", func() bool {
			f.Server.Beat()
			return c.number("client_recent_max_input_buffer") >= size && c.number("client_recent_max_output_buffer") > 0
		})
		require.NoError(t, sender.Close())
		require.NoError(t, reader.Close())
		eventually(t, "buffers are forgotten", func() bool {
			f.Server.Beat()
			return c.number("client_recent_max_input_buffer") < size && c.number("client_recent_max_output_buffer") == 0
		})
	}
}

// TestInfoShowsMemoryOfTheStartAndThePeak, even if nobody asked at the peak.
func TestInfoShowsMemoryOfTheStartAndThePeak(t *testing.T) {
	const size = 32 << 20
	f := start(t, "auto")
	c := f.dial()
	startup := c.number("used_memory_startup")
	require.Positive(t, startup)
	require.LessOrEqual(t, startup, c.number("used_memory_peak"))
	for i := range size >> 20 {
		c.do("SET", "k"+strconv.Itoa(i), strings.Repeat("v", 1<<20))
	}
	eventually(t, "the peak is seen", func() bool {
		f.Server.Beat()
		return f.Server.Peak() >= size
	})
	c.do("FLUSHALL")
	require.GreaterOrEqual(t, c.number("used_memory_peak"), float64(size))
	require.InDelta(t, startup, c.number("used_memory_startup"), 0)
}

// TestInfoCountsTheTimeOfRemovingExpiredKeys: the server looks for them again and again.
func TestInfoCountsTheTimeOfRemovingExpiredKeys(t *testing.T) {
	conf, err := config.Load([]string{"--dir", t.TempDir()}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := launchAt(t, conf, l, nil, nil, func() {}) // by a clock that moves
	c := f.dial()
	before := c.number("expire_cycle_cpu_milliseconds")
	eventually(t, "the time grows", func() bool {
		f.Keyspace().Sweep(1 << 20)
		return c.number("expire_cycle_cpu_milliseconds") > before
	})
}

// TestInfoSaysHowLongSnapshotsTook, and how many were written.
func TestInfoSaysHowLongSnapshotsTook(t *testing.T) {
	for _, row := range []struct {
		appendOnly, call string
		rewrites         float64
	}{
		{"no", "SAVE", 0},
		{"yes", "BGREWRITEAOF", 1},
	} {
		c := start(t, "auto", "--appendonly", row.appendOnly).dial()
		require.Equal(t, "-1", c.info("rdb_last_bgsave_time_sec"))
		require.Equal(t, "-1", c.info("aof_last_rewrite_time_sec"))
		c.do("SET", "k", "v")
		c.do(row.call)
		eventually(t, "written", func() bool { return c.info("rdb_bgsave_in_progress") == "0" && c.info("rdb_saves") == "1" })
		took := c.info("rdb_last_bgsave_time_sec")
		require.NotEqual(t, "-1", took)
		require.Equal(t, "-1", c.info("rdb_current_bgsave_time_sec"))
		require.InDelta(t, row.rewrites, c.number("aof_rewrites"), 0)
		if row.rewrites == 0 {
			took = "-1"
		}
		require.Equal(t, took, c.info("aof_last_rewrite_time_sec"))
	}
	last, running := server.SnapshotSeconds(5*time.Second, 3900*time.Millisecond, 12*time.Second, true)
	require.EqualValues(t, 3, last)
	require.EqualValues(t, 7, running)
	last, running = server.SnapshotSeconds(0, 0, time.Second, false)
	require.EqualValues(t, -1, last)
	require.EqualValues(t, -1, running)
}
