package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExecOnAFullDiskAppliesNothing: as in Redis EXEC is refused as a whole where its
// effects could not be kept, and what it would have published stays unsaid. What only
// looks is answered.
func TestExecOnAFullDiskAppliesNothing(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f, c, disk := startFull(t, kind, t.TempDir())
		listener := f.dial()
		listener.send("SUBSCRIBE news\r\n")
		listener.expect("*3\r\n" + bulk("subscribe") + bulk("news") + ":1\r\n")
		require.Contains(t, c.do("SET", "k", "1"), "outcome of this command is unknown")
		const why = "MISCONF Errors writing to the AOF file: No space left on device"
		exec := func(queue ...[]string) string {
			require.Equal(t, "+OK\r\n", c.do("MULTI"))
			for _, q := range queue {
				require.Equal(t, "+QUEUED\r\n", c.do(q...))
			}
			return c.do("EXEC")
		}
		set, publish := []string{"SET", "k", "2"}, []string{"PUBLISH", "news", "k"}
		take, look := []string{"CL.THROTTLE", "u", "15", "30", "60"}, []string{"CL.THROTTLE", "u", "15", "30", "60", "0"}
		script := []string{"EVAL", "return redis.call('SET','k','2')", "0"}
		for _, queue := range [][][]string{
			{set}, {publish, set}, {{"GET", "k"}, {"DEL", "k"}}, {{"FLUSHALL"}}, {publish, take}, {publish, script}, {take, script}, {script, set},
		} {
			require.Equal(t, "-EXECABORT Transaction discarded because of: "+why+"\r\n", exec(queue...), "%q", queue)
		}
		require.Equal(t, array(five(0, 16, 16, -1, 0), "-"+why+"\r\n", bulk("1")), exec(look, take, []string{"GET", "k"}))
		require.Equal(t, array(bulk("1"), ":1\r\n"), exec([]string{"GET", "k"}, publish))
		listener.expect("*3\r\n" + bulk("message") + bulk("news") + bulk("k"))
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		disk.full.Store(false)
		eventually(t, "healed", func() bool { return c.info("aof_last_write_status") == "ok" })
		require.Equal(t, array(":1\r\n", "+OK\r\n"), exec(publish, set))
		listener.expect("*3\r\n" + bulk("message") + bulk("news") + bulk("k")) // and no other before it
		require.Equal(t, bulk("2"), c.do("GET", "k"))
	})
}
