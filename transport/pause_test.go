package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestPausedClientsEnd: a postponed client that disconnects or is killed is closed, as is one that
// still waits when the server stops. The server does not wait for it.
func TestPausedClientsEnd(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--shutdown-timeout", "3600")
		admin, killed, left, closed, last := f.Dial(), f.Dial(), f.Dial(), f.Dial(), f.Dial()
		id := killed.ID()
		require.Equal(t, inproc.OK, admin.Do("CLIENT", "PAUSE", "3600000", "WRITE"))
		for _, c := range []*inproc.Client{killed, left, closed, last} {
			c.Send("SET k v\r\nPING\r\n")
		}
		inproc.Await(t, "they are postponed", func() bool { return admin.Info("blocked_clients") == "4" })
		require.Equal(t, ":0\r\n", admin.Do("CLIENT", "UNBLOCK", id))
		require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "ID", id))
		killed.ExpectEnd()
		require.NoError(t, left.Close())
		require.NoError(t, closed.Conn.(interface{ CloseWrite() error }).CloseWrite())
		closed.ExpectEnd()
		inproc.Await(t, "they are postponed", func() bool { return admin.Info("blocked_clients") == "1" })
		f.End()
		last.ExpectEnd()
	})
}
