package replicas_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestRepliesAreHeldWithoutALog: repl-ack-replies holds where nothing is kept and no replica has
// ever been, too.
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

// TestNoWriteBeforeTheFirstReplica: a primary that needs replicas refuses the very first write.
func TestNoWriteBeforeTheFirstReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--min-replicas-to-write", "1")
		require.Equal(t, "-NOREPLICAS Not enough good replicas to write.\r\n", f.Dial().Do("SET", "k", "v"))
	})
}
