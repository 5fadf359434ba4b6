package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// limitsOfFile returns the limits of the namespace ns for names with numbers of requests in a minute, such as "foo 5".
func limitsOfFile(t testing.TB, list ...string) *limitador.Config {
	t.Helper()
	var text strings.Builder
	for _, is := range list {
		name, most, _ := strings.Cut(is, " ")
		fmt.Fprintf(&text, "- {namespace: ns, name: %s, max_value: %s, seconds: 60, conditions: [], variables: [\"'%[1]s'\"]}\n", name, most)
	}
	c, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(text.String())})
	require.NoError(t, faults.Err())
	return c
}

// TestLimitsLieBesideRules: limits of Limitador are policies as those of rules are, and each leaves the others.
func TestLimitsLieBesideRules(t *testing.T) {
	both(t, func(t *testing.T, r *registry.Registry, st registry.Store, records map[string]string, tell func()) {
		require.Nil(t, r.Limits())
		require.NoError(t, update(t, r, st, entryOf(t, policy.Main, "lim.ns.foo", "", "SW 1 1")))
		kept := len(records)
		first := limitsOfFile(t, "foo 5", "bar 6")
		require.Equal(t, 2, r.SetLimits("limitador-limits", first))
		require.Equal(t, 1, r.SetRules("rls-config", rules(t, "foo 7")))
		want := map[string]string{
			"lim.ns.foo": "SW 5 60 FIXED ANCHOR FIRST", "lim.ns.bar": "SW 6 60 FIXED ANCHOR FIRST", "rls.rl.foo": "SW 7 60 FIXED",
		}
		require.Equal(t, want, limitsOfAll(r))
		require.Same(t, first, r.Limits())
		require.Zero(t, r.SetLimits("limitador-limits", limitsOfFile(t, "foo 5", "bar 6")), "nothing has changed")
		require.Len(t, records, kept, "limits are no records")
		require.True(t, r.Fixed(r.Table().Policy([]byte("lim.ns.foo")).Main))
		for name, option := range map[string]string{"lim.ns.foo": "limitador-limits", "rls.rl.foo": "rls-config"} {
			err := update(t, r, st, entryOf(t, policy.Main, name, "", "SW 9 1"))
			require.EqualError(t, err, "policy '"+name+"' is defined by the rules of "+option)
		}
		require.NoError(t, update(t, r, st, entryOf(t, policy.Block, "lim.ns.bar", "acme", "")))

		require.Equal(t, 2, r.SetLimits("limitador-limits", limitsOfFile(t, "bar 8")))
		want = map[string]string{"lim.ns.foo": "SW 1 1", "lim.ns.bar": "SW 8 60 FIXED ANCHOR FIRST", "rls.rl.foo": "SW 7 60 FIXED"}
		require.Equal(t, want, limitsOfAll(r), "the record is in force again")
		tell()
		require.Equal(t, want, limitsOfAll(r))
		var a policy.Applied
		r.Table().Policy([]byte("lim.ns.bar")).Find([]byte("acme"), 0, &a)
		require.NotNil(t, a.Block, "what applies to keys stays")
		require.Equal(t, 1, r.SetRules("rls-config", nil))
		require.NotNil(t, r.Limits())
		with := r.Bytes()
		require.Equal(t, 1, r.SetLimits("limitador-limits", nil))
		require.Equal(t, map[string]string{"lim.ns.foo": "SW 1 1"}, limitsOfAll(r))
		require.Less(t, r.Bytes(), with)
	})
}
