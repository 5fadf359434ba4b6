package transactions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestExecOnAFullDiskAppliesNothing: as in Redis, EXEC is refused as a whole if its effects
// cannot be logged, and its messages are not published. A transaction that only reads is
// answered.
func TestExecOnAFullDiskAppliesNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--appendonly", "yes")
		c := s.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "k", "1"))
		s.FillDisk(true)
		listener := s.Dial()
		listener.Send("SUBSCRIBE news\r\n")
		listener.Expect("*3\r\n" + inproc.Bulk("subscribe") + inproc.Bulk("news") + ":1\r\n")
		require.Contains(t, c.Do("SET", "k", "1"), "outcome of this command is unknown")
		const why = "MISCONF Errors writing to the AOF file: No space left on device"
		exec := func(queue ...[]string) string {
			require.Equal(t, inproc.OK, c.Do("MULTI"))
			for _, q := range queue {
				require.Equal(t, inproc.Queued, c.Do(q...))
			}
			return c.Do("EXEC")
		}
		set, publish := []string{"SET", "k", "2"}, []string{"PUBLISH", "news", "k"}
		take, look := []string{"CL.THROTTLE", "u", "15", "30", "60"}, []string{"CL.THROTTLE", "u", "15", "30", "60", "0"}
		script := []string{"EVAL", "return redis.call('SET','k','2')", "0"}
		for _, queue := range [][][]string{
			{set}, {publish, set}, {{"GET", "k"}, {"DEL", "k"}}, {{"FLUSHALL"}}, {publish, take}, {publish, script}, {take, script}, {script, set},
		} {
			require.Equal(t, "-EXECABORT Transaction discarded because of: "+why+"\r\n", exec(queue...), "%q", queue)
		}
		require.Equal(t, inproc.Array(inproc.Five(0, 16, 16, -1, 0), "-"+why+"\r\n", inproc.Bulk("1")), exec(look, take, []string{"GET", "k"}))
		require.Equal(t, inproc.Array(inproc.Bulk("1"), ":1\r\n"), exec([]string{"GET", "k"}, publish))
		listener.Expect("*3\r\n" + inproc.Bulk("message") + inproc.Bulk("news") + inproc.Bulk("k"))
		require.Equal(t, inproc.Pong, c.Do("PING"))
		s.FillDisk(false)
		w.Until("healed", 100*time.Millisecond, time.Minute, func() bool { return c.Info("aof_last_write_status") == "ok" })
		require.Equal(t, inproc.Array(":1\r\n", inproc.OK), exec(publish, set))
		listener.Expect("*3\r\n" + inproc.Bulk("message") + inproc.Bulk("news") + inproc.Bulk("k")) // no other message came before it
		require.Equal(t, inproc.Bulk("2"), c.Do("GET", "k"))
	})
}
