package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// invalidated is the push that a tracking client is sent for a key it has read.
func invalidated(keys ...string) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(">2\r\n" + bulk("invalidate") + array(bulk(k)))
	}
	return b.String()
}

// TestTracking: on RESP3 every tracked read is followed at once by its invalidation, so
// that no client ever keeps anything; behind a transaction's reply if it was read inside.
func TestTracking(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for name, c := range map[string]struct{ packet, want string }{
			"default":          {"CLIENT TRACKING ON\r\nGET k\r\nEXISTS k l\r\nPING\r\n", "+OK\r\n_\r\n" + invalidated("k") + ":0\r\n" + invalidated("k", "l") + "+PONG\r\n"},
			"off again":        {"CLIENT TRACKING ON\r\nCLIENT TRACKING OFF\r\nGET k\r\n", "+OK\r\n+OK\r\n_\r\n"},
			"writes and peeks": {"CLIENT TRACKING ON\r\nDEL k\r\nKEYS none\r\n", "+OK\r\n:0\r\n*0\r\n"},
			"opt in":           {"CLIENT TRACKING ON OPTIN\r\nGET k\r\nCLIENT CACHING YES\r\nGET k\r\nGET k\r\n", "+OK\r\n_\r\n+OK\r\n_\r\n" + invalidated("k") + "_\r\n"},
			"opt out":          {"CLIENT TRACKING ON OPTOUT\r\nGET k\r\nCLIENT CACHING NO\r\nGET k\r\nGET l\r\n", "+OK\r\n_\r\n" + invalidated("k") + "+OK\r\n_\r\n_\r\n" + invalidated("l")},
			"transaction": {
				"CLIENT TRACKING ON\r\nMULTI\r\nGET k\r\nPING\r\nPTTL l\r\nEXEC\r\nPING\r\n",
				"+OK\r\n+OK\r\n" + strings.Repeat(queuedReply, 3) + array("_\r\n", "+PONG\r\n", ":-2\r\n") + invalidated("k", "l") + "+PONG\r\n",
			},
			"opt in for a transaction": {
				"CLIENT TRACKING ON OPTIN\r\nCLIENT CACHING YES\r\nMULTI\r\nPTTL k\r\nGET k\r\nEXEC\r\nGET k\r\n",
				"+OK\r\n+OK\r\n+OK\r\n" + strings.Repeat(queuedReply, 2) + array(":-2\r\n", "_\r\n") + invalidated("k", "k") + "_\r\n",
			},
			"opt in inside a transaction": {
				"CLIENT TRACKING ON OPTIN\r\nMULTI\r\nGET j\r\nCLIENT CACHING YES\r\nGET k\r\nEXEC\r\nGET k\r\n",
				"+OK\r\n+OK\r\n" + strings.Repeat(queuedReply, 3) + array("_\r\n", "+OK\r\n", "_\r\n") + invalidated("k") + "_\r\n",
			},
			"opt in for a discarded one": {
				"CLIENT TRACKING ON OPTIN\r\nCLIENT CACHING YES\r\nMULTI\r\nGET k\r\nDISCARD\r\nGET k\r\n",
				"+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+OK\r\n_\r\n",
			},
			"failed watch": {
				"CLIENT TRACKING ON\r\nWATCH w\r\nCL.THROTTLE w 1 1 1\r\nMULTI\r\nGET k\r\nEXEC\r\nDEL w\r\n",
				"+OK\r\n+OK\r\n" + five(0, 2, 1, -1, 1) + "+OK\r\n+QUEUED\r\n_\r\n:1\r\n",
			},
			"RESP2": {"HELLO 2\r\nCLIENT TRACKING ON\r\nGET k\r\n", "+OK\r\n$-1\r\n"},
		} {
			conn := f.dial()
			require.Contains(t, conn.do("HELLO", "3"), "%7")
			conn.send(c.packet)
			if name == "RESP2" {
				require.Contains(t, conn.reply(), "*14")
			}
			for rest := c.want; rest != ""; {
				got := conn.reply()
				require.True(t, strings.HasPrefix(rest, got), "%s: %q, wanted %q", name, got, rest)
				rest = rest[len(got):]
			}
			require.Equal(t, "+PONG\r\n", conn.do("PING"), name)
			require.NoError(t, conn.Close())
		}
	})
}
