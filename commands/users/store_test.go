package users_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/server"
)

// TestUsersWhereKeysAreElsewhere: with --store the rules are checked before the store is asked,
// and again when a wait for room ends.
func TestUsersWhereKeysAreElsewhere(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		var double *remotedouble.Double
		f, clock := w.StartTimedWith(func(o *server.Options) {
			ks := keyspace.New(keyspace.Options{Databases: 1, Clock: o.Clock})
			t.Cleanup(ks.Close)
			double = remotedouble.New(ks, 1)
			o.OpenStore = func(remote.Options) (server.RemoteStore, error) { return double, nil }
		}, "--store", "redis://127.0.0.1")
		admin := f.Dial()
		app := asApp(t, f, admin, "~a*", "%R~in:*", "+@all")
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
			require.Equal(t, want, app.Do(strings.Fields(call)...), call)
		}
		require.Equal(t, 1, double.Decided(), "only RL.INFO of what may be read")
		app.Send("CL.THROTTLE a 1 1 60\r\nCL.THROTTLE b 1 1 60\r\nRL.MULTI 2 a a3 CL 1 1 60 TB 1 1 60\r\nMULTI\r\nCL.THROTTLE a 1 1 60\r\nCL.THROTTLE in:k 1 1 60\r\nEXEC\r\n")
		app.Expect(inproc.Five(0, 2, 1, -1, 60), noKey, inproc.Five(0, 2, 0, -1, 120), inproc.OK, "+QUEUED\r\n", noKey,
			"-EXECABORT Transaction discarded because of previous errors.\r\n")

		app.Send("MULTI\r\nCL.THROTTLE a7 0 1 60\r\nCL.THROTTLE a8 0 1 60\r\n")
		app.Expect(inproc.OK, "+QUEUED\r\n", "+QUEUED\r\n")
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "app", "resetkeys", "~a8", "~a4"))
		app.Send("EXEC\r\n")
		require.Contains(t, app.Reply(), "*2\r\n-NOPERM ACLs rules changed between")
		require.Equal(t, inproc.Five(0, 1, 1, -1, 0), admin.Do("CL.THROTTLE", "a7", "0", "1", "60", "0"), "nothing was charged")
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Do("CL.THROTTLE", "a8", "0", "1", "60", "0"))

		double.Hold()
		app.Send("CL.THROTTLE a4 1 1 60\r\n")
		w.Settle()
		require.Equal(t, 1, double.Pending())
		app.Send("CL.THROTTLE a4 1 1 60\r\n")
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "app", "-cl.throttle"))
		double.Release()
		app.Expect(inproc.Five(0, 2, 1, -1, 60), noCommand("app", "cl.throttle"))

		admin.Send(takeWindow)
		admin.Expect(inproc.Five(0, 1, 0, -1, 60))
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "app", "~k", "~b"))
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Do("TB.ACQUIRE", "b", "1", "1", "60"))
		other := f.Dial()
		require.Equal(t, inproc.OK, other.Do("AUTH", "app", "p"))
		app.Send(waitWindow)
		other.Send("TB.ACQUIRE b 1 1 60 1 BLOCK 0\r\n")
		w.Settle()
		_, waits := f.Engine().CountClients()
		require.EqualValues(t, 2, waits)
		require.Equal(t, 2, clock.Timers())
		require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", "app", "resetkeys"))
		w.Advance(time.Minute)
		app.Expect(noKey)
		other.Expect(noKey)
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Do("SW.ALLOW", "k", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"), "nobody has taken it")
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), admin.Do("TB.ACQUIRE", "b", "1", "1", "60"), "it was given back")
	})
}
