package policies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
)

// TestHistoryOfALaterVersion: a server starts with a history of a later version. It ignores
// unknown fields, and skips and logs a change that it cannot read.
func TestHistoryOfALaterVersion(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start("--appendonly", "yes", "--appendfsync", "always")
		n.Dial().Set(hour)
		v := n.Keyspace().NewHandle()
		for id, value := range map[string]string{
			"2": `{"at":1,"user":"ann","address":"","what":"LATER","policy":"api","ticket":{"id":7}}`,
			"3": `{"at":"noon"}`,
		} {
			v.Refresh()
			_, err := v.SetString(keyspace.System, []byte("change/0000000000000000000"+id), []byte(value), keyspace.SetOptions{Expiry: entry.NoExpiry})
			require.NoError(t, err)
		}
		v.Close()
		require.NoError(t, n.Stop())
		n.Restart()
		c := n.Dial()
		changes := c.Do("RL.CHANGES")
		require.Contains(t, changes, "LATER")
		require.Contains(t, changes, "*2\r\n", "the first one and that of the later version")
		require.Contains(t, n.Log.String(), "changes of policies that this version cannot read are left out of RL.CHANGES")
		require.Contains(t, c.Do("RL.USE", "api", "k"), ":0\r\n:10\r\n:9\r\n")
	})
}
