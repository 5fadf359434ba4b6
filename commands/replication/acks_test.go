package replication_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestRepliesAreHeldWithoutALog: repl-ack-replies also delays replies if nothing is kept and
// there was no replica yet.
func TestRepliesAreHeldWithoutALog(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "no", "--repl-ack-replies", "1", "--repl-ack-timeout", "1")
		c := f.Dial()
		require.Regexp(t, "^-NOREPLICAS Not enough replicas have acknowledged", c.Do("SET", "k", "v"))
		require.Regexp(t, "^-NOREPLICAS", c.Do("SET", "k", "v"))
		require.Equal(t, "$1\r\nv\r\n", c.Do("GET", "k"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "repl-ack-replies", "0"))
		require.Equal(t, "+OK\r\n", c.Do("SET", "k", "v"))
	})
}

// TestNoWriteBeforeTheFirstReplica: a primary that needs replicas refuses even the first write.
func TestNoWriteBeforeTheFirstReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--min-replicas-to-write", "1")
		require.Equal(t, "-NOREPLICAS Not enough good replicas to write.\r\n", f.Dial().Do("SET", "k", "v"))
	})
}

// TestMinReplicasIsAskedAtEachWrite: a replica that is promoted ends its link, and its primary
// accepts no write from then on. The effect is immediate, also after CONFIG SET.
func TestMinReplicasIsAskedAtEachWrite(t *testing.T) {
	const refused = "-NOREPLICAS Not enough good replicas to write.\r\n"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start("--min-replicas-to-write", "1", "--min-replicas-max-lag", "3")
		c := primary.Dial()
		require.Equal(t, refused, c.Do("INCR", "n"))
		replica := w.Start()
		replica.Follow(primary)
		w.Until("the replica counts", time.Millisecond, time.Minute, func() bool { return c.Do("INCR", "n") == ":1\r\n" })

		now := time.Now()
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "min-replicas-to-write", "2"))
		require.Equal(t, refused, c.Do("INCR", "n"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "min-replicas-to-write", "1"))
		require.Equal(t, ":2\r\n", c.Do("INCR", "n"))
		require.Equal(t, inproc.OK, c.Do("MULTI"))
		require.Equal(t, "+QUEUED\r\n", c.Do("INCR", "n"))

		require.Equal(t, inproc.OK, replica.Dial().Do("REPLICAOF", "NO", "ONE"))
		w.Settle()
		require.Contains(t, c.Do("EXEC"), "-EXECABORT Transaction discarded because of: NOREPLICAS")
		require.Equal(t, refused, c.Do("INCR", "n"))
		require.Contains(t, c.Do("EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"), "NOREPLICAS")
		require.Equal(t, "*5\r\n:0\r\n:1\r\n:1\r\n:-1\r\n:0\r\n", c.Do("CL.THROTTLE", "k", "0", "1", "60", "0"), "it only looks")
		require.Equal(t, now, time.Now())
	})
}

// TestMinReplicasMaxLagIsExact: a silent replica counts for min-replicas-max-lag and no longer.
func TestMinReplicasMaxLagIsExact(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary, replica := w.Start("--min-replicas-to-write", "1", "--min-replicas-max-lag", "3"), w.Start()
		replica.Follow(primary)
		c := primary.Dial()
		w.Until("the replica counts", time.Millisecond, time.Minute, func() bool { return c.Do("INCR", "n") == ":1\r\n" })
		w.Advance(10 * time.Millisecond) // the replica acknowledges that
		w.Net.Hold(replica.Host, primary.Host)
		w.Advance(1900 * time.Millisecond) // the last acknowledgement came up to a second ago
		require.Equal(t, ":2\r\n", c.Do("INCR", "n"))
		w.Advance(1100 * time.Millisecond)
		require.Contains(t, c.Do("INCR", "n"), "-NOREPLICAS")
		w.Net.Release(replica.Host, primary.Host)
		w.Settle()
		require.Equal(t, ":3\r\n", c.Do("INCR", "n"))
	})
}

// TestRepliesOfAFormerPrimaryAreNotHeld: when a primary becomes a replica, replies that wait for
// replicas become errors. A later promotion, or acknowledgements of its replicas, do not change
// that.
func TestRepliesOfAFormerPrimaryAreNotHeld(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a := w.Start("--repl-ack-replies", "1", "--repl-ack-timeout", "60000")
		b := w.Start("--repl-ack-replies", "1", "--repl-ack-timeout", "60000")
		b.Follow(a)
		c := a.Dial()
		require.Equal(t, ":1\r\n", c.Do("INCR", "n"))
		w.Net.Hold(a.Host, b.Host)
		waiting := a.Dial()
		waiting.Command("INCR", "n")
		w.Settle()
		b.Promote() // otherwise the delayed part of the stream would still be applied
		w.Net.Release(a.Host, b.Host)
		a.Follow(b)
		require.Equal(t, "$1\r\n1\r\n", c.Do("GET", "n"), "the second is gone")
		a.Promote()
		b.Follow(a)
		require.Equal(t, ":2\r\n", c.Do("INCR", "n"))
		require.Contains(t, waiting.Reply(), "-NOREPLICAS")
	})
}
