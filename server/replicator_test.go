package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRepliesAreHeldWithoutALog: repl-ack-replies holds where nothing is kept and no replica has
// ever been, too.
func TestRepliesAreHeldWithoutALog(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := startStandby(t, kind, "--appendonly", "no", "--repl-ack-replies", "1", "--repl-ack-timeout", "1")
		c := f.dial()
		eventually(t, "a write is not acknowledged", func() bool {
			reply := c.do("SET", "k", "v")
			require.Regexp(t, `^(\+OK|-NOREPLICAS Not enough replicas have acknowledged)`, reply)
			return reply[0] == '-'
		})
		require.Regexp(t, "^-NOREPLICAS", c.do("SET", "k", "v"))
		require.Equal(t, "$1\r\nv\r\n", c.do("GET", "k"))
		require.Equal(t, "+OK\r\n", c.do("CONFIG", "SET", "repl-ack-replies", "0"))
		require.Equal(t, "+OK\r\n", c.do("SET", "k", "v"))
	})
}

// TestNoWriteBeforeTheFirstReplica: a primary that needs replicas refuses the very first write.
func TestNoWriteBeforeTheFirstReplica(t *testing.T) {
	f := startStandby(t, transports()[0], "--min-replicas-to-write", "1")
	require.Equal(t, "-NOREPLICAS Not enough good replicas to write.\r\n", f.dial().do("SET", "k", "v"))
}
