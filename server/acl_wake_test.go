package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/transport"
)

// asApp gives the user app rules, and returns a client of it.
func (f *fixture) asApp(admin *client, rules ...string) *client {
	f.t.Helper()
	c := f.dial()
	require.Equal(f.t, okReply, admin.do(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">p"}, rules...)...))
	require.Equal(f.t, okReply, c.do("AUTH", "app", "p"))
	return c
}

// TestCallsThatWaitAreCheckedWhenTheyWake: whoever loses a permission while it waits gets
// nothing, and leaves everything as it is.
func TestCallsThatWaitAreCheckedWhenTheyWake(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		for name, c := range map[string]struct {
			before, waits, lost, then string
			later                     time.Duration
			want, look, left          string
		}{
			"pop":         {"", "BLPOP other list 0", "resetkeys", "RPUSH list e", 0, noKey, "LLEN list", ":1\r\n"},
			"pop, write":  {"", "BZPOPMIN z 0", "resetkeys %R~*", "ZADD z 1 m", 0, noKey, "ZCARD z", ":1\r\n"},
			"pop, call":   {"", "BLMPOP 0 1 list LEFT", "-blmpop", "RPUSH list e", 0, noCommand("app", "blmpop"), "LLEN list", ":1\r\n"},
			"move":        {"", "BLMOVE from to LEFT LEFT 0", "resetkeys ~from", "RPUSH from e", 0, noKey, "LLEN to", ":0\r\n"},
			"window":      {takeWindow, waitWindow, "resetkeys", "", time.Minute, noKey, "SW.ALLOW k 1 60 0 FIXED ANCHOR FIRST", five(0, 1, 1, -1, 0)},
			"timeout":     {takeWindow, "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 1", "-sw.allow", "", time.Second, noCommand("app", "sw.allow"), "PING", "+PONG\r\n"},
			"reservation": {"TB.ACQUIRE b 1 1 60", "TB.ACQUIRE b 1 1 60 1 BLOCK 0", "resetkeys", "", time.Minute, noKey, "TB.ACQUIRE b 1 1 60 1", five(0, 1, 0, -1, 60)},
			"pause":       {"CLIENT PAUSE 1000 WRITE", "SET s v", "-set", "", time.Second, noCommand("app", "set"), "EXISTS s", ":0\r\n"},
		} {
			t.Run(name, func(t *testing.T) {
				f := start(t, kind)
				admin := f.dial()
				if c.before != "" {
					admin.do(strings.Fields(c.before)...)
				}
				app := f.asApp(admin, "+@all", "~*")
				app.send(strings.TrimSpace(c.waits) + "\r\nPING\r\n")
				eventually(t, "it waits", func() bool { _, waits := f.Engine().CountClients(); return waits == 1 })
				require.Equal(t, okReply, admin.do(append([]string{"ACL", "SETUSER", "app"}, strings.Fields(c.lost)...)...))
				if c.then != "" {
					admin.do(strings.Fields(c.then)...)
				}
				f.clock.Advance(c.later)
				app.expect(c.want, "+PONG\r\n")
				require.Equal(t, c.left, admin.do(strings.Fields(c.look)...))
				require.Contains(t, admin.do("ACL", "LOG", "1"), bulk("app"))
				if c.later == 0 {
					require.Contains(t, admin.info("cmdstat_"+strings.ToLower(strings.Fields(c.waits)[0])), "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0")
				}
			})
		}
	})
}

// TestWhoMayWaitIsServedInsteadOfWhoMayNot: one that has lost its key is no hindrance for the
// one behind it.
func TestWhoMayWaitIsServedInsteadOfWhoMayNot(t *testing.T) {
	f := start(t, "auto")
	admin, other := f.dial(), f.dial()
	app := f.asApp(admin, "+@all", "~*")
	app.command("BLPOP", "list", "0")
	f.awaits(admin, 1)
	other.command("BLPOP", "list", "0")
	f.awaits(admin, 2)
	admin.do("ACL", "SETUSER", "app", "resetkeys")
	require.Equal(t, ":1\r\n", admin.do("RPUSH", "list", "e"))
	app.expect(noKey)
	other.expect(array(bulk("list"), bulk("e")))
}

// TestBackgroundWorkIsCheckedWhenItBegins: what was allowed and waits for its turn beside the
// loops does nothing once it is forbidden.
func TestBackgroundWorkIsCheckedWhenItBegins(t *testing.T) {
	many := []string{"DEL", "k"}
	for range 10_000 {
		many = append(many, "x")
	}
	for name, c := range map[string]struct {
		call []string
		lost []string
		want string
	}{
		"offloaded": {[]string{"FLUSHALL"}, []string{"-flushall"}, noCommand("app", "flushall")},
		"flushes":   {[]string{"FLUSHDB"}, []string{"resetkeys", "~k"}, noKey},
		"many":      {many, []string{"resetkeys", "~k"}, noKey},
		"script":    {[]string{"EVAL", "return redis.call('DEL', KEYS[1]) --" + strings.Repeat("x", 4000), "1", "k"}, []string{"resetkeys", "%R~k"}, noKey},
	} {
		t.Run(name, func(t *testing.T) {
			e, worker, late := startLate(t)
			session, _ := e.Open(quietPeer{})
			t.Cleanup(session.Closed)
			do := func(words ...string) string { return string(session.Feed(worker, frame(words...), nil).Out) }
			require.Equal(t, okReply, do("SET", "k", "v"))
			_, _, err := e.Users.Set("app", []string{"on", "nopass", "~*", "+@all"})
			require.NoError(t, err)
			require.Equal(t, okReply, do("AUTH", "app", "x"))
			require.Equal(t, transport.Park, session.Feed(worker, frame(c.call...), nil).Next)
			<-late.came
			_, _, err = e.Users.Set("app", c.lost)
			require.NoError(t, err)
			late.letIn()
			var out []byte
			eventually(t, "it is answered", func() bool {
				out = session.Feed(worker, nil, nil).Out
				return len(out) > 0
			})
			require.Equal(t, c.want, string(out))
			_, _, err = e.Users.Set("app", []string{"~*", "+@all"})
			require.NoError(t, err)
			// What ran alone is answered before the others are let in again.
			eventually(t, "it has changed nothing", func() bool { return do("GET", "k") == bulk("v") })
		})
	}
}

// TestSubscribersWhoLoseAChannelMeanwhile: SUBSCRIBE looks once more when it has subscribed,
// since whoever has taken the channel away may have looked before.
func TestSubscribersWhoLoseAChannelMeanwhile(t *testing.T) {
	for _, call := range []string{"SUBSCRIBE", "SSUBSCRIBE"} {
		e := startEngine(t, transports()[0], func(st env.Store) env.Store { return st })
		worker := e.NewWorker()
		session, _ := e.Open(quietPeer{})
		t.Cleanup(session.Closed)
		_, _, err := e.Users.Set("app", []string{"on", "nopass", "&*", "+@all"})
		require.NoError(t, err)
		require.Equal(t, okReply, string(session.Feed(worker, frame("AUTH", "app", "x"), nil).Out))
		words := []string{call}
		for i := range 1500 { // which it subscribes to in two turns
			words = append(words, fmt.Sprint("c", i))
		}
		turn := session.Feed(worker, frame(words...), nil)
		require.Equal(t, transport.Again, turn.Next, call)
		_, _, err = e.Users.Set("app", []string{"resetchannels"}) // without a word to anybody
		require.NoError(t, err)
		session.Feed(worker, nil, nil)
		require.Equal(t, transport.Close, session.Feed(worker, nil, nil).Next, call)
	}
}

// TestLoginsThatWaitAreCheckedWhenTheyEnd: a password that was right a second ago is none.
func TestLoginsThatWaitAreCheckedWhenTheyEnd(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, c, stays := f.dial(), f.dial(), f.dial()
		f.asApp(admin, "+@all")
		for range 10 {
			require.Equal(t, wrongPass, c.do("AUTH", "app", "guess"))
		}
		c.command("AUTH", "app", "p")
		eventually(t, "it waits", func() bool { return f.clock.Timers() == 1 })
		stays.command("HELLO", "3", "AUTH", "app", "q")
		eventually(t, "it waits, too", func() bool { return f.clock.Timers() == 2 })
		require.Equal(t, okReply, admin.do("ACL", "SETUSER", "app", "<p", ">q"))
		f.clock.Advance(time.Second)
		c.expect(wrongPass)
		stays.expect(wrongPass)
		require.Equal(t, bulk("default"), c.do("ACL", "WHOAMI"))
	})
}

// TestUsersWhereKeysAreElsewhere: with --store rules are checked before anything is asked, and
// again when a wait for room is over.
func TestUsersWhereKeysAreElsewhere(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		e := newElsewhere(t)
		f := startWithStore(t, kind, e)
		admin := f.dial()
		app := f.asApp(admin, "~a*", "%R~in:*", "+@all")
		for call, want := range map[string]string{
			"SCAN 0":                                 noKey,
			"FLUSHDB":                                noKey,
			"CL.THROTTLE in:k 1 1 60 0":              noKey,
			"RL.INFO in:k":                           "$-1\r\n",
			"RL.INFO k":                              noKey,
			"DEL a b":                                noKey,
			"EXISTS b":                               noKey,
			"RL.MULTI 2 a3 b TB 1 1 60 CL 0 1 60":    noKey,
			"RL.MULTI 2 b a3 TB 1 1 60 CL 0 1 60":    noKey,
			"RL.MULTI 2 a3 in:k TB 1 1 60 CL 0 1 60": noKey,
		} {
			require.Equal(t, want, app.do(strings.Fields(call)...), call)
		}
		require.Len(t, e.asked, 1, "only RL.INFO of what may be read")
		app.send("CL.THROTTLE a 1 1 60\r\nCL.THROTTLE b 1 1 60\r\nRL.MULTI 2 a a3 CL 1 1 60 TB 1 1 60\r\nMULTI\r\nCL.THROTTLE a 1 1 60\r\nCL.THROTTLE in:k 1 1 60\r\nEXEC\r\n")
		app.expect(five(0, 2, 1, -1, 60), noKey, five(0, 2, 0, -1, 120), okReply, "+QUEUED\r\n", noKey,
			"-EXECABORT Transaction discarded because of previous errors.\r\n")

		app.send("MULTI\r\nCL.THROTTLE a7 0 1 60\r\nCL.THROTTLE a8 0 1 60\r\n")
		app.expect(okReply, "+QUEUED\r\n", "+QUEUED\r\n")
		require.Equal(t, okReply, admin.do("ACL", "SETUSER", "app", "resetkeys", "~a8", "~a4"))
		app.send("EXEC\r\n")
		require.Contains(t, app.reply(), "*2\r\n-NOPERM ACLs rules changed between")
		require.Equal(t, five(0, 1, 1, -1, 0), admin.do("CL.THROTTLE", "a7", "0", "1", "60", "0"), "nothing was charged")
		require.Equal(t, five(0, 1, 0, -1, 60), admin.do("CL.THROTTLE", "a8", "0", "1", "60", "0"))

		gate := make(chan struct{})
		e.mu.Lock()
		e.gate = gate
		e.mu.Unlock()
		for len(e.asked) > 0 {
			<-e.asked
		}
		app.send("CL.THROTTLE a4 1 1 60\r\n")
		<-e.asked
		app.send("CL.THROTTLE a4 1 1 60\r\n")
		require.Equal(t, okReply, admin.do("ACL", "SETUSER", "app", "-cl.throttle"))
		close(gate)
		app.expect(five(0, 2, 1, -1, 60), noCommand("app", "cl.throttle"))

		f.fill(admin)
		require.Equal(t, okReply, admin.do("ACL", "SETUSER", "app", "~k", "~b"))
		require.Equal(t, five(0, 1, 0, -1, 60), admin.do("TB.ACQUIRE", "b", "1", "1", "60"))
		other := f.dial()
		require.Equal(t, okReply, other.do("AUTH", "app", "p"))
		app.send(waitWindow)
		other.send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		eventually(t, "they wait", func() bool { _, waits := f.Engine().CountClients(); return waits == 2 })
		// The one for the window gets its timer behind an answer of the store.
		eventually(t, "their timers run", func() bool { return f.clock.Timers() == 2 })
		require.Equal(t, okReply, admin.do("ACL", "SETUSER", "app", "resetkeys"))
		f.clock.Advance(time.Minute)
		app.expect(noKey)
		other.expect(noKey)
		require.Equal(t, five(0, 1, 0, -1, 60), admin.do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"), "nobody has taken it")
		require.Equal(t, five(0, 1, 0, -1, 60), admin.do("TB.ACQUIRE", "b", "1", "1", "60"), "it was given back")
	})
}
