package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// exchange is a command and its reply.
type exchange struct{ command, reply string }

// figure returns a number of INFO.
func figure(t *testing.T, info, name string) (n int) {
	t.Helper()
	_, rest, found := strings.Cut(info, "\n"+name+":")
	require.True(t, found, name)
	_, err := fmt.Sscanf(rest, "%d", &n)
	require.NoError(t, err)
	return n
}

// TestCallsAreSentAgainToOtherServers: what one server has charged is a repetition at the other, which also settles what
// the first has reserved.
func TestCallsAreSentAgainToOtherServers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		nodes := []*inproc.Node{startOver(w, e), startOver(w, e)}
		clients := []*inproc.Client{nodes[0].Dial(), nodes[1].Dial()}
		require.Equal(t, "+OK\r\n", clients[0].Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "9", "60", "LOG", "CALLS", "TB", "90", "90", "60"))
		follows()
		reused, ended := "-IDREUSED ID was used with other arguments\r\n", "-IDENDED The reservation has ended\r\n"
		for i, x := range []exchange{
			{"TB.ACQUIRE tb 5 5 60 2 ID a", inproc.Five(0, 5, 3, -1, 24)},
			{"TB.ACQUIRE tb 5 5 60 2 ID a", inproc.Five(0, 5, 3, -1, 24)},
			{"TB.ACQUIRE tb 5 5 60 3 ID a", reused},
			{"SW.ALLOW sw 5 60 2 LOG RESERVE a 30", inproc.Five(0, 5, 3, -1, 60)},
			{"SW.ALLOW sw 5 60 2 LOG RESERVE a 30", inproc.Five(0, 5, 3, -1, 60)},
			{"RL.RENEW sw a 60", ":1\r\n"},
			{"RL.COMMIT sw a 1", ":1\r\n"},
			{"RL.COMMIT sw a 1", ":0\r\n"},
			{"SW.ALLOW sw 5 60 2 LOG RESERVE a 30", ended},
			{"SW.ALLOW sw 5 60 0 LOG", inproc.Five(0, 5, 4, -1, 60)},
			{"RL.MULTI 2 {k}1 {k}2 SW 5 60 2 LOG TB 6 6 60 2 RESERVE m 30", inproc.Five(0, 5, 3, -1, 60)},
			{"RL.CANCEL {k}2 m", ":-1\r\n"},
			{"RL.COMMIT {k}1 m 1 3", ":1\r\n"},
			{"SW.ALLOW {k}1 5 60 0 LOG", inproc.Five(0, 5, 4, -1, 60)},
			{"TB.ACQUIRE {k}2 6 6 60 0", inproc.Five(0, 6, 3, -1, 30)},
			{"RL.USE api k 30 RESERVE r 30", inproc.Five(0, 9, 8, -1, 60)},
			{"RL.USE api k 30 RESERVE r 30", inproc.Five(0, 9, 8, -1, 60)},
			{"RL.RENEW k r 40 POLICY api", ":1\r\n"},
			{"RL.COMMIT k r 60 POLICY api", ":1\r\n"},
			{"RL.COMMIT k r 60 POLICY api", ":0\r\n"},
			{"RL.USE api k 30 RESERVE r 30", ended},
			{"RL.CANCEL k other POLICY api", ":-1\r\n"},
			{"RL.CANCEL k r POLICY gone", ":-1\r\n"},
			{"RL.USE api k 0", inproc.Five(0, 9, 8, -1, 60)},
			{"RL.USE api k 5 ID i", inproc.Five(0, 9, 7, -1, 60)},
			{"RL.USE api k 5 ID i", inproc.Five(0, 9, 7, -1, 60)},
			{"RL.USE api k 6 ID i", reused},
		} {
			require.Equal(t, x.reply, clients[i%2].Do(strings.Fields(x.command)...), x.command)
		}
		made, repeats := 0, 0
		for _, c := range clients {
			info := c.Do("INFO", "ratelimit")
			made += figure(t, info, "reservations_made") + figure(t, info, "reservations_committed")
			repeats += figure(t, info, "id_repeats")
		}
		require.Equal(t, 6, made)
		require.Equal(t, 4, repeats)
		require.Contains(t, clients[0].Do("RL.POLICY", "GET", "api")+clients[1].Do("RL.POLICY", "GET", "api"), "$9\r\nestimated\r\n:30\r\n$6\r\nactual\r\n:60\r\n")
	})
}

// TestAKeyOfAStoreRemembersFewCalls: the value of a key is written with each call, so there are at most 64 calls and as
// many live reservations, and fewer if the options say so.
func TestAKeyOfAStoreRemembersFewCalls(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		c := startOver(w, e).Dial()
		for i := range 66 {
			c.Do("SW.ALLOW", "k", "1000", "60", "1", "LOG", "ID", fmt.Sprint(i))
			last := c.Do("SW.ALLOW", "r", "1000", "60", "1", "LOG", "RESERVE", fmt.Sprint(i), "30")
			require.Equal(t, i >= 64, strings.HasPrefix(last, "*5\r\n:1\r\n"), "%d: %s", i, last)
		}
		require.Equal(t, inproc.Five(0, 1000, 934, -1, 60), c.Do("SW.ALLOW", "k", "1000", "60", "1", "LOG", "ID", "2"))
		require.Equal(t, inproc.Five(0, 1000, 933, -1, 60), c.Do("SW.ALLOW", "k", "1000", "60", "1", "LOG", "ID", "1"))
		info := c.Do("INFO", "ratelimit")
		require.Equal(t, 3, figure(t, info, "id_forgotten"))
		require.Equal(t, 2, figure(t, info, "reservations_refused"))
		require.Equal(t, "+OK\r\n", c.Do("CONFIG", "SET", "id-max-per-key", "1"))
		c.Do("SW.ALLOW", "k", "1000", "60", "1", "LOG", "ID", "one")
		require.Equal(t, inproc.Five(0, 1000, 931, -1, 60), c.Do("SW.ALLOW", "k", "1000", "60", "1", "LOG", "ID", "3"))
	})
}
