package users_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// A window of one unit a minute that starts with its first call: a second call waits until the
// minute ends.
const (
	takeWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n"
	waitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
)

// asApp sets rules for the user app, and returns a client that is logged in as app.
func asApp(t *testing.T, f *inproc.Node, admin *inproc.Client, rules ...string) *inproc.Client {
	t.Helper()
	c := f.Dial()
	require.Equal(t, inproc.OK, admin.Do(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">p"}, rules...)...))
	require.Equal(t, inproc.OK, c.Do("AUTH", "app", "p"))
	return c
}

// TestCallsThatWaitAreCheckedWhenTheyWake: a client that loses a permission while it waits is
// refused, and its call changes nothing.
func TestCallsThatWaitAreCheckedWhenTheyWake(t *testing.T) {
	for name, c := range map[string]struct {
		before, waits, lost, then string
		later                     time.Duration
		want, look, left          string
	}{
		"pop":         {"", "BLPOP other list 0", "resetkeys", "RPUSH list e", 0, noKey, "LLEN list", ":1\r\n"},
		"pop, write":  {"", "BZPOPMIN z 0", "resetkeys %R~*", "ZADD z 1 m", 0, noKey, "ZCARD z", ":1\r\n"},
		"pop, call":   {"", "BLMPOP 0 1 list LEFT", "-blmpop", "RPUSH list e", 0, noCommand("app", "blmpop"), "LLEN list", ":1\r\n"},
		"move":        {"", "BLMOVE from to LEFT LEFT 0", "resetkeys ~from", "RPUSH from e", 0, noKey, "LLEN to", ":0\r\n"},
		"window":      {takeWindow, waitWindow, "resetkeys", "", time.Minute, noKey, "SW.ALLOW k 1 60 0 FIXED ANCHOR FIRST", inproc.Five(0, 1, 1, -1, 0)},
		"timeout":     {takeWindow, "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 1", "-sw.allow", "", time.Second, noCommand("app", "sw.allow"), "PING", "+PONG\r\n"},
		"reservation": {"TB.ACQUIRE b 1 1 60", "TB.ACQUIRE b 1 1 60 1 BLOCK 0", "resetkeys", "", time.Minute, noKey, "TB.ACQUIRE b 1 1 60 1", inproc.Five(0, 1, 0, -1, 60)},
		"pause":       {"CLIENT PAUSE 1000 WRITE", "SET s v", "-set", "", time.Second, noCommand("app", "set"), "EXISTS s", ":0\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				f := w.Start()
				admin := f.Dial()
				if c.before != "" {
					admin.Do(strings.Fields(c.before)...)
				}
				app := asApp(t, f, admin, "+@all", "~*")
				app.Send(strings.TrimSpace(c.waits) + "\r\nPING\r\n")
				w.Settle()
				_, waits := f.Engine().CountClients()
				require.EqualValues(t, 1, waits)
				require.Equal(t, inproc.OK, admin.Do(append([]string{"ACL", "SETUSER", "app"}, strings.Fields(c.lost)...)...))
				if c.then != "" {
					admin.Do(strings.Fields(c.then)...)
				}
				w.Advance(c.later)
				app.Expect(c.want, "+PONG\r\n")
				require.Equal(t, c.left, admin.Do(strings.Fields(c.look)...))
				require.Contains(t, admin.Do("ACL", "LOG", "1"), inproc.Bulk("app"))
				if c.later == 0 {
					require.Contains(t, admin.Info("cmdstat_"+strings.ToLower(strings.Fields(c.waits)[0])), "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0")
				}
			})
		})
	}
}

// TestWhoMayWaitIsServedInsteadOfWhoMayNot: a waiting client that has lost access to the key does
// not hold up the client behind it.
func TestWhoMayWaitIsServedInsteadOfWhoMayNot(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin, other := f.Dial(), f.Dial()
		app := asApp(t, f, admin, "+@all", "~*")
		app.Command("BLPOP", "list", "0")
		w.Settle()
		require.EqualValues(t, 1, admin.InfoNumber("blocked_clients"))
		other.Command("BLPOP", "list", "0")
		w.Settle()
		require.EqualValues(t, 2, admin.InfoNumber("blocked_clients"))
		admin.Do("ACL", "SETUSER", "app", "resetkeys")
		require.Equal(t, ":1\r\n", admin.Do("RPUSH", "list", "e"))
		app.Expect(noKey)
		other.Expect(inproc.Array(inproc.Bulk("list"), inproc.Bulk("e")))
	})
}

// TestSubscribersWhoLoseAChannelMeanwhile: SUBSCRIBE checks the rules again after it has
// subscribed, because the command that takes the channel away may have looked for subscribers
// before.
func TestSubscribersWhoLoseAChannelMeanwhile(t *testing.T) {
	for _, call := range []string{"SUBSCRIBE", "SSUBSCRIBE"} {
		s := inproc.Open(t)
		users := s.Server().Engine().Users
		_, _, err := users.Set("app", []string{"on", "nopass", "&*", "+@all"})
		require.NoError(t, err)
		require.Equal(t, inproc.OK, s.Do("AUTH", "app", "x"))
		words := []string{call}
		for i := range 1500 { // it subscribes to them in two slices
			words = append(words, fmt.Sprint("c", i))
		}
		require.Equal(t, transport.Again, s.Turn(inproc.Encode(nil, words...), nil).Next, call)
		_, _, err = users.Set("app", []string{"resetchannels"}) // without closing any client
		require.NoError(t, err)
		s.Turn(nil, nil)
		require.Equal(t, transport.Close, s.Turn(nil, nil).Next, call)
	}
}

// TestLoginsThatWaitAreCheckedWhenTheyEnd: a login that waits fails if its password is changed
// meanwhile.
func TestLoginsThatWaitAreCheckedWhenTheyEnd(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		admin, c, stays := f.Dial(), f.Dial(), f.Dial()
		asApp(t, f, admin, "+@all")
		for range 10 {
			require.Equal(t, wrongPass, c.Do("AUTH", "app", "guess"))
		}
		c.Command("AUTH", "app", "p")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		stays.Command("HELLO", "3", "AUTH", "app", "q")
		w.Settle()
		require.Equal(t, 2, clock.Timers())
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "app", "<p", ">q"))
		w.Advance(time.Second)
		c.Expect(wrongPass)
		w.Advance(time.Second)
		stays.Expect(wrongPass)
		require.Equal(t, inproc.Bulk("default"), c.Do("ACL", "WHOAMI"))
	})
}
