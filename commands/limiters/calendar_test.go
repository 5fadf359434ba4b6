package limiters_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/slidingwindow"
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

// TestZoneOfAnotherRelease: a policy and a key with a zone that tzdata does not have, of a program with another
// release, are kept on a replica and over restarts. The window of the key holds until its end, and the next one is
// of UTC. The log says so.
func TestZoneOfAnotherRelease(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start("--appendonly", "yes"), w.Start("--appendonly", "yes")
		require.NoError(t, a.Keyspace().Restore(keyspace.System, []byte("main/plan"), entry.Entry{
			Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte(`{"limits":["SW 10 DAY ZONE Moon/Crater"],"since":1}`),
		}))
		end := a.Now().Add(100 * time.Second)
		value := binary.LittleEndian.AppendUint64(nil, uint64(end.Add(-23*time.Hour)))
		value = binary.LittleEndian.AppendUint64(value, uint64(23*time.Hour))
		value = binary.LittleEndian.AppendUint64(value, 7)
		require.NoError(t, a.Keyspace().Restore(0, []byte("plan:ann"), entry.Entry{
			Kind: entry.OfWindow(slidingwindow.Calendar), Expiry: end, Value: append(value, "\x01\x00\x00Moon/Crater"...),
		}))
		const warning = "a policy has a time zone that this program's tzdata does not have"
		tells := func(n *inproc.Node, times int) {
			t.Helper()
			lines, _ := n.Log.Lines(warning)
			require.Equal(t, times, lines)
			require.Contains(t, n.Log.String(), "zone=Moon/Crater policy=plan tzdata="+calendar.Release())
		}
		use := func(n *inproc.Node, answer string) {
			t.Helper()
			require.Contains(t, n.Dial().Do("RL.USE", "plan", "ann", "1"), "*5\r\n"+answer)
		}
		use(a, ":0\r\n:10\r\n:2\r\n:-1\r\n:100\r\n")
		tells(a, 1)
		b.Follow(a)
		a.Agree(b)
		require.Contains(t, b.Dial().Do("RL.POLICY", "GET", "plan"), "SW 10 DAY ZONE Moon/Crater")
		tells(b, 1)
		a.HandOver(b)
		use(b, ":0\r\n:10\r\n:1\r\n:-1\r\n:100\r\n")
		require.Contains(t, b.Dial().Do("RL.POLICY", "SET", "plan", "LIMITS", "SW", "10", "DAY", "ZONE", "Moon/Crater"),
			"-ERR clause 1: value is no time zone: ZONE is 'Moon/Crater', must be a zone of tzdata "+calendar.Release())
		require.Contains(t, b.Dial().Do("SW.ALLOW", "plan:ann", "10", "DAY", "ZONE", "Moon/Crater"), "-ERR value is no time zone")
		require.Equal(t, "+Background append only file rewriting started\r\n", b.Dial().Do("BGREWRITEAOF"))
		w.Advance(time.Second)
		b.Kill()
		b.Restart()
		tells(b, 2)
		use(b, ":0\r\n:10\r\n:0\r\n:-1\r\n:99\r\n")
		w.Advance(99 * time.Second)
		use(b, ":0\r\n:10\r\n:9\r\n:-1\r\n:6300\r\n") // to midnight
		require.Contains(t, b.Dial().Do("RL.INFO", "plan:ann"), "DAY ZONE Moon/Crater")
	})
}
