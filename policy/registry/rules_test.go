package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// rules returns the rules of the domain rl for keys with numbers of requests in a minute, such as "foo 5".
func rules(t testing.TB, list ...string) *rls.Config {
	t.Helper()
	var text strings.Builder
	text.WriteString("domain: rl\ndescriptors:\n")
	for _, is := range list {
		key, requests, _ := strings.Cut(is, " ")
		fmt.Fprintf(&text, "- {key: %s, rate_limit: {unit: minute, requests_per_unit: %s}}\n", key, requests)
	}
	c, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte(text.String())}}, false)
	require.NoError(t, faults.Err())
	return c
}

// limitsOfAll returns the limits of the policies of r.
func limitsOfAll(r *registry.Registry) map[string]string {
	all := map[string]string{}
	r.Table().EachPolicy(func(p *policy.Policy) { all[p.Name] = strings.Join(p.Main.Limits.Text, ", ") })
	return all
}

// both runs f for a registry with records of its own, and for one over the records of a store. tell lets the registry
// observe all records again.
func both(t *testing.T, f func(t *testing.T, r *registry.Registry, st registry.Store, records map[string]string, tell func())) {
	t.Run("local", func(t *testing.T) {
		m := newMemory()
		r := registry.New(registry.Options{Rules: true, Failed: func(err error) { t.Error(err) }})
		f(t, r, m, m.records, func() {
			r.Observe(nil, entry.Entry{})
			for key, value := range m.records {
				r.Observe([]byte(key), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte(value)})
			}
			r.Settle()
		})
	})
	t.Run("shared", func(t *testing.T) {
		l := newFleet(1)
		r := registry.New(registry.Options{Rules: true, Shared: true})
		l.servers = append(l.servers, r)
		f(t, r, l.as(r), l.records, func() { l.reads(r) })
	})
}

func update(t testing.TB, r *registry.Registry, st registry.Store, all ...*policy.Entry) error {
	t.Helper()
	return r.Update(st, registry.Author{What: "TEST"}, func(*policy.Builder, limit.Instant) (edits []registry.Edit, _ error) {
		for _, e := range all {
			edits = append(edits, registry.Set(e))
		}
		return edits, nil
	})
}

// TestRulesLieOverRecords: the policies of rules are in force, commands cannot change them, and what applies to
// their keys stays when the rules change, go and come again.
func TestRulesLieOverRecords(t *testing.T) {
	both(t, func(t *testing.T, r *registry.Registry, st registry.Store, records map[string]string, tell func()) {
		require.NoError(t, update(t, r, st, entryOf(t, policy.Main, "rls.rl.foo", "", "SW 1 1"), entryOf(t, policy.Main, "api", "", "SW 2 1")))
		kept := len(records)
		_, c := r.InForce()
		require.Nil(t, c)

		first := rules(t, "foo 5", "bar 6")
		require.Equal(t, 2, r.SetRules("rls-config", first))
		want := map[string]string{"api": "SW 2 1", "rls.rl.foo": "SW 5 60 FIXED", "rls.rl.bar": "SW 6 60 FIXED"}
		require.Equal(t, want, limitsOfAll(r))
		table, c := r.InForce()
		require.Same(t, first, c)
		foo := table.Policy([]byte("rls.rl.foo"))
		require.True(t, foo.Main.Count && r.Fixed(foo.Main) && !r.Defines(foo.Main))
		require.False(t, r.Fixed(table.Policy([]byte("api")).Main))
		require.Zero(t, r.SetRules("rls-config", rules(t, "foo 5", "bar 6")), "nothing has changed")
		require.Len(t, records, kept, "rules are no records")

		err := update(t, r, st, entryOf(t, policy.Main, "rls.rl.foo", "", "SW 9 1"))
		require.EqualError(t, err, "policy 'rls.rl.foo' is defined by the rules of rls-config")
		require.NoError(t, update(t, r, st, entryOf(t, policy.Override, "rls.rl.foo", "acme", "SW 9 1"), entryOf(t, policy.Block, "rls.rl.bar", "acme", "")))
		applied := func(name string) (a policy.Applied) {
			if p := r.Table().Policy([]byte(name)); p != nil {
				p.Find([]byte("acme"), 0, &a)
			}
			return a
		}
		require.NotNil(t, applied("rls.rl.foo").Override)
		counts := r.Table().Policy([]byte("rls.rl.bar")).Counts
		counts.Allowed.Add(5)

		require.Equal(t, 2, r.SetRules("rls-config", rules(t, "bar 7")))
		want = map[string]string{"api": "SW 2 1", "rls.rl.foo": "SW 1 1", "rls.rl.bar": "SW 7 60 FIXED"}
		require.Equal(t, want, limitsOfAll(r), "the record is in force again")
		require.NotNil(t, applied("rls.rl.foo").Override)
		require.NotNil(t, applied("rls.rl.bar").Block)
		require.Equal(t, int64(5), r.Table().Policy([]byte("rls.rl.bar")).Counts.Allowed.Load())

		tell()
		require.Equal(t, want, limitsOfAll(r), "records that arrive leave the rules")
		require.NotNil(t, applied("rls.rl.bar").Block)
		require.Equal(t, 1, r.SetRules("rls-config", nil))
		require.Equal(t, map[string]string{"api": "SW 2 1", "rls.rl.foo": "SW 1 1"}, limitsOfAll(r))
		require.NoError(t, update(t, r, st, entryOf(t, policy.Main, "rls.rl.bar", "", "SW 3 1")))
		require.NotNil(t, applied("rls.rl.bar").Block, "its block is a record")
	})
}

// TestDocumentsLeaveRules: a document of policies neither removes nor changes the policies of rules, but may repeat
// them.
func TestDocumentsLeaveRules(t *testing.T) {
	both(t, func(t *testing.T, r *registry.Registry, st registry.Store, records map[string]string, _ func()) {
		r.SetFile("policies.yaml")
		require.NoError(t, update(t, r, st, entryOf(t, policy.Main, "api", "", "SW 2 1")))
		r.SetRules("rls-config", rules(t, "foo 5"))
		civil := func(at limit.Instant) limit.Instant { return at }
		all := r.Document(0, civil, nil)
		require.Len(t, all.Policies, 2)
		require.Empty(t, r.Document(0, civil, r.Defines).Policies, "DUMP FILE has no rules")

		by := registry.Author{What: "TEST"}
		changed, err := r.Apply(st, by, all, policy.Bounds{})
		require.NoError(t, err)
		require.Zero(t, changed)
		require.Empty(t, r.Preview(0, civil, all))
		changed, err = r.Apply(st, by, parse(t, "policies: {}"), policy.Bounds{})
		require.NoError(t, err)
		require.Equal(t, 1, changed)
		require.Equal(t, map[string]string{"rls.rl.foo": "SW 5 60 FIXED"}, limitsOfAll(r))
		other := parse(t, "policies:\n  rls.rl.foo:\n    limits: [SW 1 1]\n")
		for _, by.File = range []bool{false, true} {
			_, err = r.Apply(st, by, other, policy.Bounds{})
			require.EqualError(t, err, "policy 'rls.rl.foo' is defined by the rules of rls-config")
		}
	})
}

// TestRulesAndPolicyFileOverStore: with a store, both lie over the records. Rules go before the policy file.
func TestRulesAndPolicyFileOverStore(t *testing.T) {
	l := newFleet(0)
	r := registry.New(registry.Options{Rules: true, Shared: true})
	r.SetFile("policies.yaml")
	l.servers = append(l.servers, r)
	require.Equal(t, 2, l.lay(t, r, "policies:\n  rls.rl.foo:\n    limits: [SW 1 1]\n  api:\n    limits: [SW 2 1]\n"))
	require.Equal(t, 2, r.SetRules("rls-config", rules(t, "foo 5", "bar 6")))
	require.Equal(t, map[string]string{"api": "SW 2 1", "rls.rl.foo": "SW 5 60 FIXED", "rls.rl.bar": "SW 6 60 FIXED"}, limitsOfAll(r))
	require.Equal(t, 1, l.lay(t, r, "policies:\n  rls.rl.foo:\n    limits: [SW 1 1]\n"))
	require.Equal(t, map[string]string{"rls.rl.foo": "SW 5 60 FIXED", "rls.rl.bar": "SW 6 60 FIXED"}, limitsOfAll(r))
	require.Equal(t, 2, r.SetRules("rls-config", nil))
	require.Equal(t, map[string]string{"rls.rl.foo": "SW 1 1"}, limitsOfAll(r))
}

// TestRulesHaveTheirOwnBound: rules do not count as policies of commands, of which there may still be as many as
// without them.
func TestRulesHaveTheirOwnBound(t *testing.T) {
	both(t, func(t *testing.T, r *registry.Registry, st registry.Store, _ map[string]string, _ func()) {
		var list []string
		for i := range policy.DefaultPolicies + 5 {
			list = append(list, fmt.Sprintf("k%d 1", i))
		}
		require.Equal(t, len(list), r.SetRules("rls-config", rules(t, list...)))
		before := r.Bytes()
		var all []*policy.Entry
		for i := range policy.DefaultPolicies {
			all = append(all, entryOf(t, policy.Main, fmt.Sprintf("p%d", i), "", "SW 1 1"))
		}
		require.NoError(t, update(t, r, st, all...))
		require.Greater(t, r.Bytes(), before)
		require.ErrorIs(t, update(t, r, st, entryOf(t, policy.Main, "more", "", "SW 1 1")), policy.ErrTooManyPolicies)
		require.NoError(t, update(t, r, st, entryOf(t, policy.Override, "rls.rl.k1", "acme", "SW 1 1")))
	})
}
