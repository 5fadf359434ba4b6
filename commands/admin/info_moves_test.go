package admin_test

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// number returns a numeric field of INFO.
func number(t *testing.T, c *inproc.Client, field string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(c.Info(field), 64)
	require.NoError(t, err)
	return n
}

// TestInfoShowsBytesPerSecond: INFO has the rates of received and sent bytes.
func TestInfoShowsBytesPerSecond(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for range 3 {
			c.Do("ECHO", strings.Repeat("x", 10_000))
			w.Advance(time.Second)
		}
		require.Positive(t, number(t, c, "instantaneous_input_kbps"))
		require.Positive(t, number(t, c, "instantaneous_output_kbps"))
	})
}

// TestInfoShowsTheLargestBufferOfAClient: INFO has the largest buffer of a client within the last
// seconds.
func TestInfoShowsTheLargestBufferOfAClient(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const size = 300_000
		f := w.Start()
		sender, reader, c := f.Dial(), f.Dial(), f.Dial()
		c.Do("SET", "long", strings.Repeat("v", 1<<20))
		sender.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$400000\r\n" + strings.Repeat("v", size))
		reader.Send(strings.Repeat("*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n", 50))
		go func() {
			_, _ = io.WriteString(reader, strings.Repeat("*2\r\n$4\r\nECHO\r\n$1000\r\n"+strings.Repeat("e", 1000)+"\r\n", 1000))
		}()
		w.Advance(time.Second)
		require.GreaterOrEqual(t, c.InfoNumber("client_recent_max_input_buffer"), int64(size))
		require.Positive(t, c.InfoNumber("client_recent_max_output_buffer"))
		require.NoError(t, sender.Close())
		require.NoError(t, reader.Close())
		w.Until("buffers are forgotten", time.Second, time.Minute, func() bool {
			return c.InfoNumber("client_recent_max_input_buffer") < size && c.InfoNumber("client_recent_max_output_buffer") == 0
		})
	})
}

// TestInfoShowsMemoryOfTheStartAndThePeak: INFO has the memory at the start and the peak, even if
// no client asked at the peak.
func TestInfoShowsMemoryOfTheStartAndThePeak(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const size = 32 << 20
		f := w.Start()
		c := f.Dial()
		startup := number(t, c, "used_memory_startup")
		require.Positive(t, startup)
		require.LessOrEqual(t, startup, number(t, c, "used_memory_peak"))
		for i := range size >> 20 {
			c.Do("SET", "k"+strconv.Itoa(i), strings.Repeat("v", 1<<20))
		}
		w.Advance(time.Second) // the janitor sees the peak
		c.Do("FLUSHALL")
		require.GreaterOrEqual(t, number(t, c, "used_memory_peak"), float64(size))
		require.InDelta(t, startup, number(t, c, "used_memory_startup"), 0)
	})
}

// TestInfoCountsTheTimeOfRemovingExpiredKeys: INFO counts the time of the sweeps for expired
// keys.
func TestInfoCountsTheTimeOfRemovingExpiredKeys(t *testing.T) {
	c := inproc.OpenTimed(t)
	spent := func() string {
		_, rest, _ := strings.Cut(c.Do("INFO", "stats"), "expire_cycle_cpu_milliseconds:")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	before := spent()
	for n := 0; spent() == before; n++ {
		require.Less(t, n, 100_000, "so many sweeps took no time: it is still %q ms", before)
		c.Server().Keyspace().Sweep(1 << 20)
	}
}

// TestInfoSaysHowLongSnapshotsTook: INFO has the number and the duration of snapshots.
func TestInfoSaysHowLongSnapshotsTook(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for _, row := range []struct {
			appendOnly, call string
			rewrites         float64
		}{
			{"no", "SAVE", 0},
			{"yes", "BGREWRITEAOF", 1},
		} {
			c := w.Start("--appendonly", row.appendOnly).Dial()
			require.Equal(t, "-1", c.Info("rdb_last_bgsave_time_sec"))
			require.Equal(t, "-1", c.Info("aof_last_rewrite_time_sec"))
			c.Do("SET", "k", "v")
			c.Do(row.call)
			w.Settle()
			require.Equal(t, "0", c.Info("rdb_bgsave_in_progress"))
			require.Equal(t, "1", c.Info("rdb_saves"))
			took := c.Info("rdb_last_bgsave_time_sec")
			require.NotEqual(t, "-1", took)
			require.Equal(t, "-1", c.Info("rdb_current_bgsave_time_sec"))
			require.InDelta(t, row.rewrites, number(t, c, "aof_rewrites"), 0)
			if row.rewrites == 0 {
				took = "-1"
			}
			require.Equal(t, took, c.Info("aof_last_rewrite_time_sec"))
		}
	})
}
