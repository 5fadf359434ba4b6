package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// showing are the commands that show policies.
var showing = []string{"RL.POLICY GET api", "RL.POLICY LIST", "RL.POLICY DUMP", "RL.POLICY DIFF x", "RL.OVERRIDE LIST api", "RL.CHANGES", "RL.RULES", "RL.MATCH shop foo=x"}

// deniedAll checks that a client may make none of the calls, in any way.
func deniedAll(t *testing.T, c *inproc.Client, calls []string) {
	t.Helper()
	for _, words := range calls {
		require.Contains(t, c.Say(words), "-NOPERM", words)
	}
}

// TestWhoMayUsePoliciesMayNotChangeThem: the permission +rl.use does not allow to change or show
// policies. Rules about keys apply to the keys of the state.
func TestWhoMayUsePoliciesMayNotChangeThem(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin := f.Dial()
		admin.Set("RL.POLICY SET api LIMITS SW 10 3600 FIXED TB 20 1 3600", "RL.POLICY SET other LIMITS SW 10 3600 FIXED")
		dump := admin.Say("RL.POLICY DUMP")
		app := f.Dial().As(admin, "~api:*", "+rl.use", "+multi", "+exec", "+eval")
		require.Equal(t, inproc.Five(0, 10, 9, -1, 3600), app.Say("RL.USE api k"))
		require.Equal(t, inproc.Five(0, 10, 9, -1, 3600), app.Say("RL.USE api api:k"))
		denied := append(append([]string{"RL.EXPLAIN api k", "RL.USE other k", "RL.USE other api:k", "RL.USE ap i:k", "RL.USE API k", "DEL api:k", "RL.INFO api:k"}, changing...), showing...)
		deniedAll(t, app, denied)
		for _, words := range denied {
			app.Set("MULTI")
			require.Contains(t, app.Say(words), "-NOPERM")
			require.Contains(t, app.Say("EXEC"), "-EXECABORT")
			call := "'" + strings.Join(strings.Fields(words), "','") + "'"
			reply := app.Do("EVAL", "return redis.call("+call+")", "0")
			require.True(t, strings.Contains(reply, "NOPERM") || strings.Contains(reply, "ACL") || strings.Contains(reply, "not allowed from script"), "%s: %s", words, reply)
		}
		require.Equal(t, inproc.Five(0, 10, 8, -1, 7200), app.Do("EVAL", "return redis.call('RL.USE','api','k')", "1", "api:k"))
		require.Contains(t, app.Do("EVAL", "return redis.call('RL.USE','other','k')", "0"), "No permissions to access a key")
		require.Equal(t, dump, admin.Say("RL.POLICY DUMP"))
		require.Equal(t, 2, strings.Count(admin.Say("RL.CHANGES"), inproc.Bulk("id")))

		for i, rules := range []string{
			"+@all -@policy", "+@all -@admin -rl.policy -rl.override", "+@all -@dangerous", "+@write +@read +@ratelimit +@fast +@slow -@dangerous", "+@ratelimit",
		} {
			c := f.Dial().As(admin, append(strings.Fields(rules), "~*")...)
			require.Contains(t, c.Say(fmt.Sprint("RL.USE api by", i)), "*5\r\n:0\r\n", rules)
			deniedAll(t, c, changing)
		}
	})
}

// TestWhoMayDoWhatWithPolicies: the category @policy has all commands except RL.USE, and
// subcommands can be allowed one by one. RL.EXPLAIN needs read access to the key, and RL.USE
// needs write access.
func TestWhoMayDoWhatWithPolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin := f.Dial()
		admin.Set("RL.POLICY SET api LIMITS SW 10 3600 FIXED")
		is := func(c *inproc.Client, allowed bool, calls ...string) {
			t.Helper()
			for _, words := range calls {
				reply := c.Say(words)
				require.Equal(t, !allowed, strings.HasPrefix(reply, "-NOPERM"), "%s: %s", words, reply)
			}
		}
		keeper := f.Dial().As(admin, "+@policy")
		is(keeper, true, showing...)
		is(keeper, true, "RL.POLICY SET api LIMITS TB 5 1 60", "RL.BLOCK api k EX 9", "RL.OVERRIDE SET api k LIMITS TB 1 1 1")
		is(keeper, false, "RL.USE api k", "RL.EXPLAIN api k", "CONFIG GET x", "DEL api:k")
		require.Contains(t, admin.Say("RL.CHANGES COUNT 1"), inproc.Bulk("user")+inproc.Bulk("app")+inproc.Bulk("address")+inproc.Bulk(keeper.LocalAddr().String()))

		reader := f.Dial().As(admin, "+@all", "%R~api:*")
		is(reader, true, "RL.EXPLAIN api k")
		is(reader, false, "RL.USE api k", "RL.EXPLAIN other k", "RL.USE api k PEEK")
		writer := f.Dial().As(admin, "+@all", "%W~api:*")
		is(writer, false, "RL.EXPLAIN api k")
		some := f.Dial().As(admin, "+rl.policy|get", "+rl.override|set", "+rl.explain", "~api:k")
		is(some, true, "RL.POLICY GET api", "RL.OVERRIDE SET api * LIMITS TB 1 1 1", "RL.EXPLAIN api k")
		is(some, false, "RL.POLICY SET api LIMITS TB 1 1 1", "RL.OVERRIDE DEL api *", "RL.EXPLAIN api kk", "RL.POLICY DEL api")
		for words, want := range map[string]string{
			"ACL DRYRUN app RL.EXPLAIN api k":  inproc.OK,
			"ACL DRYRUN app RL.EXPLAIN api k2": inproc.Bulk("User app has no permissions to access the 'api:k2' key"),
			"ACL DRYRUN app RL.USE api k":      inproc.Bulk("User app has no permissions to run the 'rl.use' command"),
		} {
			require.Equal(t, want, admin.Say(words))
		}
	})
}
