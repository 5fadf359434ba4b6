package admin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/report"
)

// TestRefusedCallsAreNoDecisions: calls that do not run, or end in an error, are neither allowed
// nor denied, and hide nothing else.
func TestRefusedCallsAreNoDecisions(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		look := func(path string, to any) {
			status, body := o.Get(path, "", "")
			require.Equal(t, 200, status, body)
			require.NoError(t, json.Unmarshal([]byte(body), to), body)
		}
		allowed := func() (sum int64) {
			var history struct{ Allowed []int64 }
			look("/api/v1/history?span=300", &history)
			for _, n := range history.Allowed {
				sum += n
			}
			return sum
		}
		c := o.Dial()
		for range 10 {
			c.Command("CL.THROTTLE", "api:1", "99", "1", "60")
			require.Contains(t, c.Reply(), ":100\r\n")
		}
		w.Advance(time.Second)
		require.EqualValues(t, 10, allowed())
		require.Equal(t, "+OK\r\n", c.Do("ACL", "SETUSER", "low", "on", "nopass", "+ping", "+auth"))
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "low", "any"))
		for range 20 {
			require.Contains(t, c.Do("CL.THROTTLE", "api:1", "99", "1", "60"), "-NOPERM")
		}
		other := o.Dial()
		for range 5 {
			require.Contains(t, other.Do("CL.THROTTLE", "api:1", "none", "1", "60"), "-Cell error")
		}
		w.Advance(time.Second)
		var overview struct {
			Checks []struct {
				ID    string
				Value float64
			}
		}
		look("/api/v1/overview", &overview)
		var errors float64
		for _, check := range overview.Checks {
			if check.ID == "errors" {
				errors = check.Value
			}
		}
		require.Positive(t, errors)
		require.EqualValues(t, 10, allowed())
	})
}

// TestOverviewCountsReservations: what has happened to them, by the names of the metrics, and repetitions.
func TestOverviewCountsReservations(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		now := func() (is report.Now) {
			w.Advance(time.Second)
			status, body := o.Get("/api/v1/overview", "", "")
			require.Equal(t, 200, status, body)
			var overview report.Overview
			require.NoError(t, json.Unmarshal([]byte(body), &overview), body)
			return overview.Now
		}
		c := o.Dial()
		c.Do("TB.ACQUIRE", "k", "100", "1", "60", "1")
		require.Empty(t, now().Reservations)
		for _, id := range []string{"a", "b", "c", "c"} {
			c.Do("TB.ACQUIRE", "k", "100", "1", "60", "10", "RESERVE", id, "5")
		}
		require.Equal(t, ":1\r\n", c.Do("RL.COMMIT", "k", "a", "3"))
		require.Equal(t, ":1\r\n", c.Do("RL.CANCEL", "k", "b"))
		require.Equal(t, ":-1\r\n", c.Do("RL.CANCEL", "k", "d"))
		w.Advance(5 * time.Second)
		require.Equal(t, ":2\r\n", c.Do("RL.COMMIT", "k", "c", "3"))
		is := now()
		require.Equal(t, []report.Count{
			{Name: "made", N: 3},
			{Name: "committed", N: 1},
			{Name: "late", N: 1},
			{Name: "cancelled", N: 1},
			{Name: "expired", N: 1},
			{Name: "unknown", N: 1},
		}, is.Reservations)
		require.EqualValues(t, 1, is.Repeats)
		w.Advance(5 * time.Minute)
		require.Empty(t, now().Reservations)
	})
}

// TestReportsNameTheServerInLines: a line that is copied reaches this server and no other.
func TestReportsNameTheServerInLines(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--bind", "127.0.0.1", "--port", "6380")
		status, body := o.Get("/api/v1/key?db=2&key=api:1", "", "")
		require.Equal(t, 200, status, body)
		require.Contains(t, body, `"line":"redis-cli -p 6380 -n 2 DEL api:1"`)
	})
}

// TestLinesReachTheServerAsTheUser: with host, port, TLS and name, as far as these are not those
// that redis-cli takes by itself.
func TestLinesReachTheServerAsTheUser(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const address = "0.0.0.0:6380"
		o := w.StartAdmin("--bind", "0.0.0.0", "--port", "6380", "--requirepass", "secret", "--protected-mode", "no")
		admin := o.DialAt(o.Host, address)
		require.Equal(t, inproc.OK, admin.Do("AUTH", "secret"))
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "ann&o", "on", ">a", "~*", "+@all"))
		for user, options := range map[string]string{"default": "--askpass", "ann&o": `--user 'ann\u0026o' --askpass`} { // as JSON has it
			status, body := o.Get("/api/v1/key?db=2&key=api:1", user, map[string]string{"default": "secret", "ann&o": "a"}[user])
			require.Equal(t, 200, status, body)
			require.Contains(t, body, fmt.Sprintf(`"line":"redis-cli -h %s -p 6380 %s -n 2 DEL api:1"`, host, options))
		}
	})
}

// TestTheLockedOutAreCounted: connections that could not log in as the user, and no others that
// have yet to log in.
func TestTheLockedOutAreCounted(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--requirepass", "secret")
		admin := o.Dial()
		require.Equal(t, inproc.OK, admin.Do("AUTH", "secret"))
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "app", "on", ">new", "+@all"))
		for range 7 {
			o.Dial() // says nothing
		}
		var clients [4]*inproc.Client
		for i := range clients {
			clients[i] = o.Dial()
			for range 2 { // ten failures of an address are answered at once
				require.Contains(t, clients[i].Do("AUTH", "app", "old"), "-WRONGPASS")
			}
		}
		require.NoError(t, clients[0].Close()) // and another comes for it
		w.Settle()
		open, _ := o.Engine().CountClients()
		require.EqualValues(t, 11, open)
		again := o.Dial()
		for range 2 {
			require.Contains(t, again.Do("AUTH", "app", "old"), "-WRONGPASS")
		}
		o.Dial().Command("AUTH", "wrong")
		w.Advance(time.Second)
		_, body := o.Get("/api/v1/overview", "default", "secret")
		require.Contains(t, body, `"title":"4 clients of app cannot log in since`)
	})
}
