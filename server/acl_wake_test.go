package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asApp gives the user app rules, and returns a client of it.
func (f *fixture) asApp(admin *client, rules ...string) *client {
	f.t.Helper()
	c := f.dial()
	require.Equal(f.t, okReply, admin.do(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">p"}, rules...)...))
	require.Equal(f.t, okReply, c.do("AUTH", "app", "p"))
	return c
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
