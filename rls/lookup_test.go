package rls_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// lookUp returns what applies to a descriptor with entries such as "key=value", separated by spaces.
func lookUp(t *testing.T, c *rls.Config, domain, entries string) rls.Lookup {
	t.Helper()
	r := request(domain, entries)
	is, err := c.Lookup(r.Domain, r.Descriptors[0].Entries)
	require.NoError(t, err)
	return is
}

// TestLookup: the steps that match, and which limit applies or why none does.
func TestLookup(t *testing.T) {
	c := load(t, shop)
	for entries, want := range map[string][2]string{
		"foo=x":                              {"foo by key", `policy rls.rl.foo applies to key "x": SW 2 60 FIXED`},
		"path=/cart user=a|":                 {"path by key, user by key", `policy rls.rl.path.user applies to key "/cart|a%7C": SW 5 3600 FIXED`},
		"user=gold":                          {"user_gold by value", `policy rls.rl.user_gold applies to key "all": SW 9 86400 FIXED`},
		"user_gold=x":                        {"user_gold by key", `policy rls.rl.user_gold applies to key "gold_x": SW 9 86400 FIXED`},
		"route=api/x":                        {"route_api/* by star, shared", `policy rls.rl.route_api__-deee226d applies to key "all": SW 3 60 FIXED`},
		"star=r":                             {"s*r by star", `policy rls.rl.s_r-1a08dd9f applies to key "star_r": SW 1 60 FIXED`},
		"s*r=x":                              {"s*r by key", `policy rls.rl.s_r-1a08dd9f applies to key "s*r_x": SW 1 60 FIXED`},
		"a=b":                                {"a_b by value", `policy rls.rl.a_b applies to key "%_": SW 1 60 FIXED`},
		"free=x":                             {"free by key", `policy rls.rl.free applies to key "x": NONE`},
		"none=x":                             {"none by key", `policy rls.rl.none applies to key "x": SW 0 60 FIXED`},
		"":                                   {"", `no limit applies: the descriptor has no entries`},
		"bar=x":                              {"", `no limit applies: no step of the domain matches entry 1, "bar=x"`},
		"user=silver":                        {"", `no limit applies: no step of the domain matches entry 1, "user=silver"`},
		"path=/cart":                         {"path by key", `no limit applies: the step "path" has no rate_limit`},
		"path=/cart foo=x user=y":            {"path by key", `no limit applies: no step below "path" matches entry 2, "foo=x"`},
		"foo=x foo=y":                        {"foo by key", `no limit applies: no step below "foo" matches entry 2, "foo=y"`},
		"bar=\xff" + strings.Repeat("x", 99): {"", `no limit applies: no step of the domain matches entry 1, "bar=\xff` + strings.Repeat("x", 59) + `..."`},
	} {
		is := lookUp(t, c, "rl", entries)
		var steps []string
		for _, s := range is.Steps {
			text := fmt.Sprintf("%s by %s", s.Text, s.Way)
			if s.Shared {
				text += ", shared"
			}
			steps = append(steps, text)
		}
		require.Equal(t, want[0], strings.Join(steps, ", "), entries)
		require.Equal(t, want[1], is.Sentence())
		require.Equal(t, is.Rule == nil, is.Key == nil)
	}
	nowhere := lookUp(t, c, "shp", "foo=x")
	require.Equal(t, `no limit applies: there is no domain "shp"`, nowhere.Sentence())
	require.Nil(t, nowhere.Rule)
	require.Empty(t, nowhere.Steps)
}

// TestLookupSaysWhatIsCharged: policy and key are those of the charge of a request with the descriptor.
func TestLookupSaysWhatIsCharged(t *testing.T) {
	c := load(t, shop)
	for _, entries := range []string{"foo=x", "path=/cart user=ada", "user=gold", "route=api/x", "tier=green", "a=b", "a_b=a_b", "foo=" + strings.Repeat("x", 2000)} {
		var p rls.Plan
		require.NoError(t, c.Plan(request("rl", entries), &p))
		is := lookUp(t, c, "rl", entries)
		require.Equal(t, string(p.Charges[0].Policy), is.Rule.Policy)
		require.Equal(t, string(p.Charges[0].Key), string(is.Key))
		require.Same(t, c.Rule(is.Rule.Policy), is.Rule)
	}
}

// TestLookupOfBadDescriptors: no rules, no domain, too many entries.
func TestLookupOfBadDescriptors(t *testing.T) {
	c := load(t, shop)
	_, err := c.Lookup(nil, nil)
	require.ErrorIs(t, err, rls.ErrNoDomain)
	_, err = c.Lookup([]byte("rl"), make([]rls.Entry, rls.MaxEntries+1))
	require.ErrorIs(t, err, rls.ErrEntries)
	_, err = c.Lookup([]byte("rl"), make([]rls.Entry, rls.MaxEntries))
	require.NoError(t, err)
	_, err = (*rls.Config)(nil).Lookup([]byte("rl"), nil)
	require.ErrorIs(t, err, rls.ErrNoConfig)
}

// TestRulesOfDomains: rules are listed domain by domain in the order of the files, with their places.
func TestRulesOfDomains(t *testing.T) {
	file := func(name, domain, keys string) rulefile.File {
		text := "domain: " + domain + "\ndescriptors:\n"
		for key := range strings.FieldsSeq(keys) {
			text += "- {key: " + key + ", rate_limit: {unit: day, requests_per_unit: 1}}\n"
		}
		return rulefile.File{Name: name, Text: []byte(text)}
	}
	c, _, _, faults := rls.Load([]rulefile.File{file("1", "b", "z y"), file("2", "a", "x"), file("3", "b", "w"), file("4", "none", "")}, true)
	require.NoError(t, faults.Err())
	shown := func(rules []*rls.Rule) (text string) {
		for _, r := range rules {
			text += fmt.Sprintf("%s:%d %s/%s ", r.File, r.Line, r.Domain, r.Path[0])
		}
		return text
	}
	require.Equal(t, "1:3 b/z 1:4 b/y 3:3 b/w 2:3 a/x ", shown(c.Rules()))
	for domain, want := range map[string]string{"a": "2:3 a/x ", "b": "1:3 b/z 1:4 b/y 3:3 b/w ", "none": ""} {
		rules, ok := c.RulesOf([]byte(domain))
		require.True(t, ok)
		require.Equal(t, want, shown(rules))
	}
	_, ok := c.RulesOf([]byte("c"))
	require.False(t, ok)
	_, ok = (*rls.Config)(nil).RulesOf([]byte("a"))
	require.False(t, ok)
}

// TestSharedRules: a rule is shared if a step of its path is.
func TestSharedRules(t *testing.T) {
	c := load(t, `domain: d
descriptors:
- {key: a, value: "*", share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 1}}]}
- {key: c, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: d, value: "*", share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}}]}
`)
	var shared []bool
	for _, r := range c.Rules() {
		shared = append(shared, r.Shared)
	}
	require.Equal(t, []bool{true, true, false, true}, shared)
}
