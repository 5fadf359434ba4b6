package convert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/convert"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/strict"
)

// TestFromEnvoy converts each feature of such a file.
func TestFromEnvoy(t *testing.T) {
	require.Equal(t, `# Policies from shop.yaml, for envoyproxy/ratelimit.
# This is how they are called. <x> is the value of x, and a slash joins the parts of a key:
# choose another sign if values have slashes.
# Of several conditions that hold, one with an exact value goes before one with a pattern.
#
#   shop (plan)
#     if plan is old-trial, or plan is not beta, *-trial
#     RL.USE shop.plan <plan>
#
#   shop (plan)
#     if plan is beta
#     RL.USE shop.plan_beta beta
#
#   shop (plan)
#     if plan matches *-trial and is not old-trial
#     RL.USE shop.plan__-trial <plan>
#
#   shop (path)
#     if path is /v1/login, or path is not /v1/*
#     RL.USE shop.path <path>
#
#   shop (path)
#     if path matches /v1/* and is not /v1/login
#     RL.USE shop.path /v1/*
#
#   shop (nobody)
#     RL.USE shop.nobody <nobody>
#
#   shop (plan) (user)
#     if plan is gold
#     RL.USE shop.plan_gold.user <user>
#
#   shop (region) (user)
#     if region is not "eu west"
#     if user is not bot
#     RL.USE shop.region.user <region>/<user>
#
#   shop (region) (user)
#     if region is not "eu west"
#     if user is bot
#     RL.USE shop.region.user_bot <region>
#
#   shop (region) (user)
#     if region is "eu west"
#     RL.USE shop.region_eu_west.user <user>
#
# What is not as it was:
#   shop.yaml:6: metadata: replies have none
#   shop.yaml:6: unlimited: NONE passes all calls and keeps nothing
#   shop.yaml:16: value beta: it has a policy of its own, which the caller has to choose: shadow is said of a whole policy
#   shop.yaml:20: value *-trial: it has a policy of its own, which the caller has to choose: a pattern is an exact key, or a prefix that ends in *
#   shop.yaml:21: unit: year: it is 365 days, as in ratelimit, and begins at multiples of that since 1970, not on the first of January: SW n YEAR does that
#   shop.yaml:22: value gold-plus-*: it is in force here, since the longest pattern wins. ratelimit takes gold-*, which comes first
#   shop.yaml:22: unit: month: it is 30 days, as in ratelimit, and begins at multiples of that since 1970, not on the first day of a month: SW n MONTH does that
#   shop.yaml:23: other values of path: they are not limited there, and NONE passes all calls and keeps nothing
#   shop.yaml:23: detailed_metric: it is not needed: each key is counted by itself, and RL.TOP shows it
#   shop.yaml:27: quota_mode: each limit denies by itself. ratelimit denies only when all quotas are used up: ANY between policies in one call of RL.USE charges the first that passes
#   shop.yaml:33: value bot: it has a policy of its own, which the caller has to choose: the key begins with another value
#   shop.yaml:33: replaces "gold limit": a caller that uses policy shop.region.user_bot leaves out the call of policy shop.plan
#   shop.yaml:33: replaces none: no limit has this name
policies:
  shop.nobody:
    limits: [SW 0 1 FIXED]
  shop.path:
    limits: [NONE]
    overrides:
      "/v1/*":
        limits: [SW 7 604800 FIXED]
      "/v1/login":
        limits: [SW 6 60 FIXED]
  shop.plan:
    comment: "every plan: see #12"
    limits: [SW 100 1 FIXED]
    overrides:
      gold:
        comment: gold limit
        limits: [NONE]
      "gold-*":
        limits: [SW 12 31536000 FIXED]
      "gold-plus-*":
        limits: [SW 13 2592000 FIXED]
      old-trial:
        comment: not limited
        limits: [NONE]
  shop.plan__-trial:
    limits: [SW 11 86400 FIXED]
  shop.plan_beta:
    shadow: true
    limits: [SW 10 3600 FIXED]
  shop.plan_gold.user:
    limits: [SW 9 60 FIXED]
  shop.region.user:
    limits: [SW 1 1 FIXED]
  shop.region.user_bot:
    limits: [SW 2 1 FIXED]
  shop.region_eu_west.user:
    limits: [SW 3 1 FIXED]
`, converted(t, convert.FromEnvoy, `domain: shop
descriptors:
  - key: plan
    rate_limit: {unit: second, requests_per_unit: 100, name: "every plan: see #12"}
    shadow_mode: off
  - key: plan
    value: gold
    metadata: {any: [{thing: 1}], 5: x}
    rate_limit:
      unlimited: true
      name: gold limit
    descriptors:
      - {key: user, rate_limit: {unit: MINUTE, requests_per_unit: 9}}
  - key: plan
    value: old-trial
  - key: plan
    value: beta
    shadow_mode: yes
    rate_limit: {unit: hour, requests_per_unit: 10}
  - {key: plan, value: "*-trial", rate_limit: {unit: day, requests_per_unit: 11}}
  - {key: plan, value: "gold-*", rate_limit: {unit: year, requests_per_unit: 12}}
  - {key: plan, value: "gold-plus-*", rate_limit: {unit: month, requests_per_unit: 13}}
  - key: path
    value: /v1/login
    detailed_metric: true
    rate_limit: {unit: minute, requests_per_unit: 6}
  - {key: path, value: /v1/*, share_threshold: true, quota_mode: true, rate_limit: {unit: week, requests_per_unit: 7}}
  - {key: nobody, rate_limit: {unit: second, requests_per_unit: 0}}
  - key: region
    descriptors:
      - key: user
        rate_limit: {unit: second, requests_per_unit: 1}
      - key: user
        value: bot
        rate_limit: {unit: second, requests_per_unit: 2, replaces: [{name: gold limit}, {name: none}]}
  - key: region
    value: eu west
    descriptors:
      - {key: user, rate_limit: {unit: second, requests_per_unit: 3}}
`))
}

// TestEnvoyTakesWhatRatelimitTakes: a ConfigMap, anchors, aliases and merge keys, and the first of
// several documents. Line numbers are those of the file.
func TestEnvoyTakesWhatRatelimitTakes(t *testing.T) {
	r, faults := convert.FromEnvoy([]convert.File{{Name: "map.yaml", Text: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: ratelimit}
data:
  shop.yaml: |
    domain: shop
    descriptors:
      - &base
        key: plan
        rate_limit: &limit {unit: minute, requests_per_unit: 5}
      - {<<: *base, key: path}
      - key: ip
        rate_limit: {<<: [*limit, {unit: hour, name: x}], requests_per_unit: 9}
      - {key: none, rate_limit: {unit: month, requests_per_unit: }}
    ---
    domain: other
  api.yaml: "domain: api\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]"
---
kind: Service
`)}})
	require.NoError(t, faults.Err())
	limits := map[string]string{}
	for _, p := range r.Document.Policies {
		limits[p.Name] = strings.Join(p.Limits, ", ")
	}
	require.Equal(t, map[string]string{
		"shop.plan": "SW 5 60 FIXED", "shop.path": "SW 5 60 FIXED", "shop.ip": "SW 9 60 FIXED", "shop.none": "SW 0 2592000 FIXED", "api.k": "SW 1 86400 FIXED",
	}, limits)
	var lines []string
	for _, n := range r.Notes {
		lines = append(lines, fmt.Sprintf("%d %s", n.Line, n.What))
	}
	require.Equal(t, []string{"14 unit: month", "15 a further document", "18 a further document"}, lines)

	for text, want := range map[string]string{
		"kind: ConfigMap\ndata:\n  a: |\n    domain: a\n    descriptors:\n      - {key: }\n  b: |\n    [": "m.yaml:6: a descriptor has no key\nm.yaml:8: the YAML is not valid",
		"kind: ConfigMap\ndata: {a: 5}":                    "m.yaml:2: a must be text",
		"domain: &a [*a]\ndescriptors: []":                 "more than 10000 values, or for themselves",
		"domain: a\ndescriptors: [{<<: 5, key: k}]":        "m.yaml:2: a merge key (<<) needs mappings",
		"domain: a\ndescriptors: [{key: &k !x k}]":         "a tag is not allowed",
		"domain: a\ndescriptors: [{key: k}, {key: *none}]": "unknown anchor",
	} {
		_, faults := convert.FromEnvoy([]convert.File{{Name: "m.yaml", Text: []byte(text)}})
		require.ErrorContains(t, faults.Err(), want, text)
	}
}

// TestAliasesDoNotExplode: the expansion of a short text is bounded.
func TestAliasesDoNotExplode(t *testing.T) {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	_, faults := convert.FromEnvoy([]convert.File{{Name: "e.yaml", Text: []byte(text)}})
	require.ErrorContains(t, faults.Err(), "aliases stand for more than 10000 values")
}

// TestManyTenants: for a file with values for very many tenants, the result explains what to do.
func TestManyTenants(t *testing.T) {
	var text strings.Builder
	text.WriteString("domain: shop\ndescriptors:\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "  - {key: tenant, value: tenant-%05d, rate_limit: {unit: minute, requests_per_unit: %d}}\n", i, i)
	}
	_, faults := convert.FromEnvoy([]convert.File{{Name: "e.yaml", Text: []byte(text.String())}})
	require.ErrorContains(t, faults.Err(), "set their limits with RL.OVERRIDE SET")
}

// TestEnvoyFilesAreMerged: several files with the same domain, and with further domains.
func TestEnvoyFilesAreMerged(t *testing.T) {
	one := convert.File{Name: "1.yaml", Text: []byte("domain: a\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 1}}]")}
	two := convert.File{Name: "2.yaml", Text: []byte("domain: a\ndescriptors: [{key: k, value: v, rate_limit: {unit: second, requests_per_unit: 2}}]")}
	three := convert.File{Name: "3.yaml", Text: []byte("domain: b\ndescriptors:")}
	r, faults := convert.FromEnvoy([]convert.File{one, two, three})
	require.NoError(t, faults.Err())
	require.Len(t, r.Document.Policies, 1)
	require.Len(t, r.Document.Policies[0].Overrides, 1)
	require.Equal(t, []convert.Note{{File: "2.yaml", Line: 1, What: "domain a", Why: "it is in 1.yaml, too: they are one, as with MERGE_DOMAIN_CONFIG"}}, r.Notes)

	_, faults = convert.FromEnvoy([]convert.File{one, two, {Name: "4.yaml", Text: two.Text}, {Name: "5.yaml", Text: []byte("]")}})
	require.EqualError(t, faults, "4.yaml:2: there are two descriptors \"k_v\"\n5.yaml:1: the YAML is not valid: did not find expected node content")
}

// TestEnvoyFaults: configurations that ratelimit refuses are refused, with all lines.
func TestEnvoyFaults(t *testing.T) {
	_, faults := convert.FromEnvoy([]convert.File{{Name: "e.yaml", Text: []byte(`domain:
version: 2
descriptors:
  - key: a
    rate_limit: {unit: fortnight, requests_per_unit: 1}
  - key: a
    ratelimit: {}
  - value: b
  - text
  - key: c
    rate_limit: {unit: day, unlimited: true}
  - key: d
    share_threshold: true
    value: d
  - key: e
    rate_limit: {unit: day, requests_per_unit: 4294967296, name: e, replaces: [{name: e}, {name: }, {other: x}, x]}
  - key: f
    rate_limit: {unit: day, requests_per_unit: x, per: y}
    shadow_mode: 1
    descriptors: {}
    value: [1]
`)}})
	require.EqualError(t, faults, strings.TrimSpace(`
e.yaml:1: domain is missing
e.yaml:2: unknown field "version"
e.yaml:5: the unit "fortnight" does not exist: it is second, minute, hour, day, week, month or year
e.yaml:6: there are two descriptors "a"
e.yaml:7: unknown field "ratelimit"
e.yaml:8: a descriptor has no key
e.yaml:9: a descriptor must be a mapping, not the text "text"
e.yaml:11: a limit is either unlimited or has a unit
e.yaml:12: share_threshold needs a value with *
e.yaml:16: requests_per_unit must be from 0 to 4294967295, not "4294967296"
e.yaml:16: an entry of replaces has no name
e.yaml:16: unknown field "other"
e.yaml:16: an entry of replaces has no name
e.yaml:16: an entry of replaces must be a mapping, not the text "x"
e.yaml:16: a limit replaces itself
e.yaml:18: requests_per_unit must be a whole number, not the text "x"
e.yaml:18: unknown field "per"
e.yaml:19: shadow_mode must be true or false, not "1"
e.yaml:20: descriptors must be a list, not a mapping
e.yaml:21: value must be text, not a list
`))
}

// TestNamesAreUniqueAndAllowed: names are unique and valid for any domains, keys and values.
func TestNamesAreUniqueAndAllowed(t *testing.T) {
	long := strings.Repeat("long", 30)
	r, faults := convert.FromEnvoy([]convert.File{{Name: "e.yaml", Text: []byte(`domain: "größe\n:"
descriptors:
  - {key: "a b", rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: a:b, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: "` + long + `1", rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: "` + long + `2", rate_limit: {unit: second, requests_per_unit: 1, name: "a\tb` + strings.Repeat("ö", 1000) + `"}}
  - {key: v, value: "` + strings.Repeat("v", 2000) + `", rate_limit: {unit: second, requests_per_unit: 1}}
`)}})
	require.NoError(t, faults.Err())
	var names []string
	for _, p := range r.Document.Policies {
		names = append(names, p.Name)
		require.NoError(t, policy.CheckName([]byte(p.Name)))
	}
	require.Equal(t, []string{
		"gr__e__.a_b-d867daa7", "gr__e__.a_b-cd3d6125",
		"gr__e__.longlonglonglonglonglonglonglonglonglonglonglon-baed330a", "gr__e__.longlonglonglonglonglonglonglonglonglonglonglon-b9ed3177",
		"gr__e__.v_vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv-31ed0033",
	}, names)
	check(t, r)
}

// TestNamesDoNotDependOnTheOrder: entries with clashing names get the same names in any order of
// the file, so that the counters of a policy stay with it when a file is sorted.
func TestNamesDoNotDependOnTheOrder(t *testing.T) {
	named := func(from converter, head string, entries ...string) map[string]string {
		r, faults := from([]convert.File{{Name: "e.yaml", Text: []byte(head + strings.Join(entries, ""))}})
		require.NoError(t, faults.Err())
		names := map[string]string{}
		for _, p := range r.Document.Policies {
			names[p.Limits[0]] = p.Name
		}
		require.Len(t, names, len(entries))
		return names
	}
	for _, c := range []struct {
		from    converter
		head    string
		entries []string
	}{
		{convert.FromEnvoy, "domain: d\ndescriptors:\n", []string{
			"  - {key: a b, rate_limit: {unit: second, requests_per_unit: 1}}\n",
			"  - {key: a:b, rate_limit: {unit: second, requests_per_unit: 2}}\n",
			"  - {key: a_b, rate_limit: {unit: second, requests_per_unit: 3}}\n",
		}},
		{convert.FromLimitador, "", []string{
			"- {namespace: n, max_value: 1, seconds: 60, conditions: [a == '1'], variables: [u]}\n",
			"- {namespace: n, max_value: 2, seconds: 60, conditions: [a == '2'], variables: [u]}\n",
			"- {namespace: n, max_value: 3, seconds: 60, conditions: [a == '3'], variables: [u]}\n",
		}},
	} {
		want := named(c.from, c.head, c.entries...)
		slices.Reverse(c.entries)
		require.Equal(t, want, named(c.from, c.head, c.entries...))
	}
}

type converter = func([]convert.File) (*convert.Result, strict.Faults)

// converted returns the text of the result of a conversion.
func converted(t *testing.T, from converter, text string) string {
	t.Helper()
	r, faults := from([]convert.File{{Name: "shop.yaml", Text: []byte(text)}})
	require.NoError(t, faults.Err())
	return check(t, r)
}

// check returns the text of r. It checks that the text is a valid document and that each call names
// a policy in it.
func check(t *testing.T, r *convert.Result) string {
	t.Helper()
	text := r.Append(nil)
	d, faults := document.Parse("policies.yaml", text, policy.Bounds{})
	require.NoError(t, faults.Err(), "%s", text)
	require.Empty(t, document.Diff(r.Document, d))
	names := map[string]bool{}
	for _, p := range d.Policies {
		names[p.Name] = true
	}
	for _, c := range r.Calls {
		require.True(t, names[c.Policy], c.Policy)
		require.NotEmpty(t, c.Key)
	}
	return string(text)
}
