package limiters_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestCalendarOnReplicas: a replica that is promoted, and a server that has been killed and restarted,
// go on with the window of a calendar and its usage. The bubble begins at 22:13:20 UTC, which is 11:13:20 in
// Auckland.
func TestCalendarOnReplicas(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start("--appendonly", "yes", "--appendfsync", "always"), w.Start("--appendonly", "yes", "--appendfsync", "always")
		require.Contains(t, a.Dial().Do("INFO", "server"), "\r\ntzdata:"+calendar.Release()+"\r\n")
		use := func(n *inproc.Node, quantity, answer string) {
			t.Helper()
			require.Contains(t, n.Dial().Do("RL.USE", "plan", "ann", quantity), "*5\r\n"+answer)
		}
		require.Equal(t, inproc.OK, a.Dial().Do("RL.POLICY", "SET", "plan", "LIMITS", "SW", "10", "DAY", "ZONE", "Pacific/Auckland", "FROM", "11:15"))
		use(a, "4", ":0\r\n:10\r\n:6\r\n:-1\r\n:100\r\n")
		b.Follow(a)
		use(a, "1", ":0\r\n:10\r\n:5\r\n")
		a.Agree(b)
		a.HandOver(b)
		use(b, "6", ":1\r\n:10\r\n:5\r\n")
		use(b, "2", ":0\r\n:10\r\n:3\r\n")
		require.Equal(t, "+Background append only file rewriting started\r\n", b.Dial().Do("BGREWRITEAOF"))
		w.Advance(time.Second)
		b.Kill()
		b.Restart()
		require.Equal(t, "$8\r\ncalendar\r\n", b.Dial().Do("OBJECT", "ENCODING", "plan:ann"))
		use(b, "1", ":0\r\n:10\r\n:2\r\n")
		w.Advance(100 * time.Second)
		use(b, "1", ":0\r\n:10\r\n:9\r\n:-1\r\n:8")
	})
}
