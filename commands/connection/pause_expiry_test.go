package connection_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestKeysDoNotExpireDuringClientPause: during a pause, of writes or of all commands, no client
// finds a key that is past its expiry, but the key is removed and counted as expired only after
// the pause.
func TestKeysDoNotExpireDuringClientPause(t *testing.T) {
	for _, mode := range []string{"WRITE", "ALL"} {
		t.Run(mode, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				f := w.Start()
				c := f.Dial()
				expired := func() int64 { return f.Keyspace().Stats().Expired }
				require.Equal(t, inproc.OK, c.Do("SET", "k", "v", "PX", "10"))
				require.Equal(t, inproc.OK, c.Do("CLIENT", "PAUSE", "100000", mode))
				w.Advance(time.Second)
				f.Keyspace().Sweep(1000)
				require.Zero(t, expired())
				if mode == "WRITE" {
					require.Equal(t, "$-1\r\n", c.Do("GET", "k"))
					require.Equal(t, ":0\r\n", c.Do("EXISTS", "k"))
					require.Equal(t, ":1\r\n", c.Do("DBSIZE"))
					require.Equal(t, inproc.OK, c.Do("CLIENT", "UNPAUSE"))
				} else {
					w.Advance(100 * time.Second)
				}
				f.Keyspace().Sweep(1000)
				require.Equal(t, int64(1), expired())
				require.Equal(t, ":0\r\n", c.Do("DBSIZE"))
			})
		})
	}
}
