package rls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// TestRules: the rules of files in their order, with what their policies are.
func TestRules(t *testing.T) {
	c, remarks, omitted, faults := rls.Load([]rulefile.File{
		{Name: "a.yaml", Text: []byte(shop)},
		{Name: "b.yaml", Text: []byte("domain: b\ndescriptors:\n- {key: x, value: \"\\0\", quota_mode: yes, rate_limit: {unit: YEAR, requests_per_unit: 1, name: the name, replaces: [{name: a}]}}")},
	}, false)
	require.NoError(t, faults.Err())
	require.Zero(t, omitted)
	require.Equal(t, []rulefile.Remark{{Kind: rulefile.Star, File: "a.yaml", Line: 11, Name: "s*r"}}, remarks)
	var got []string
	for _, r := range c.Rules() {
		e := r.Entry()
		require.NoError(t, e.Check())
		got = append(got, fmt.Sprintf("%s:%d %s %v %t %s; %s", r.File, r.Line, e.Policy, e.Limits.Text, e.Shadow, e.Comment, strings.Join(r.Path, ",")))
		require.True(t, e.Count && e.File)
	}
	require.Equal(t, []string{
		"a.yaml:3 rls.rl.foo [SW 2 60 FIXED] false path rl.foo, unit minute; foo",
		"a.yaml:5 rls.rl.path.user [SW 5 3600 FIXED] false path rl.path.user, unit hour; path,user",
		"a.yaml:6 rls.rl.user_gold [SW 9 86400 FIXED] false path rl.user_gold, unit day; user_gold",
		"a.yaml:7 rls.rl.route_api__-deee226d [SW 3 60 FIXED] false path rl.route_api/*, unit minute; route_api/*",
		"a.yaml:8 rls.rl.tier_g_-bcb45c8a [SW 4 60 FIXED] false path rl.tier_g*, unit minute; tier_g*",
		"a.yaml:9 rls.rl.free [NONE] false path rl.free; free",
		"a.yaml:10 rls.rl.none [SW 0 60 FIXED] false path rl.none, unit minute; none",
		"a.yaml:11 rls.rl.s_r-1a08dd9f [SW 1 60 FIXED] false path rl.s*r, unit minute; s*r",
		"a.yaml:12 rls.rl.a_b [SW 1 60 FIXED] false path rl.a_b, unit minute; a_b",
		"a.yaml:13 rls.rl.test [SW 1 60 FIXED] true name t, path rl.test, unit minute; test",
		`b.yaml:3 rls.b.x__-edf85751 [SW 1 31536000 FIXED] false name the name, path "b.x_\x00", unit year; x_` + "\x00",
	}, got)
	require.Positive(t, c.Bytes())
	require.Equal(t, "rls.rl.foo", c.Rule("rls.rl.foo").Policy)
	require.Nil(t, c.Rule("rls.rl"))
}

// TestRemarks: what ratelimit accepts and its author may not expect, with the lines.
func TestRemarks(t *testing.T) {
	_, remarks, _, faults := rls.Load([]rulefile.File{
		{Name: "a.yaml", Text: []byte("domain: x\ndomain: rl\nunit: 5\ndescriptors:\n- key: a*\n  domain: [{key: {name: ~}, metadata: 1.5}]\n  rate_limit: {unit: day, key: true, replaces: [{name: z, unit: x}]}\n  shadow_mode: yes\n  shadow_mode: off\n---\ndomain: [")},
		{Name: "b.yaml", Text: []byte("\ndomain: rl\n")},
	}, true)
	require.NoError(t, faults.Err())
	var got []string
	for i := range remarks {
		got = append(got, remarks[i].String())
	}
	require.Equal(t, []string{
		"a.yaml:11: a further document is not read",
		`a.yaml:2: "domain" is there twice: its first is in line 1, and the last one counts`,
		`a.yaml:3: the field "unit" has no effect here`,
		`a.yaml:6: the field "domain" has no effect here`,
		`a.yaml:7: the field "key" has no effect here`,
		`a.yaml:7: the field "unit" has no effect here`,
		`a.yaml:9: "shadow_mode" is there twice: its first is in line 8, and the last one counts`,
		`a.yaml:5: the key "a*" has a star, which stands for any text`,
		`b.yaml:2: the domain "rl" is in a.yaml, too: the files are merged`,
	}, got)
}

// TestFaults: files that are refused, with all lines.
func TestFaults(t *testing.T) {
	_, _, _, faults := rls.Load([]rulefile.File{
		{Name: "a.yaml", Text: []byte("domain: rl\nversion: 1\ndescriptors:\n- {key: 1.5}\n- {key: a, rate_limit: {unit: x, name: [1]}}\n- {value: b, shadow_mode: 'yes', key: c, metadata: x}\n- {key: d, unit: 1.5}\n- {key: e, value: 99999999999999999999}\n- {key: f, domain: [x]}\n- {key: g, domain: {a: 1}}")},
		{Name: "b.yaml", Text: []byte("domain: rl")},
		{Name: "c.yaml", Text: []byte("# nothing")},
		{Name: "d.yaml", Text: make([]byte, rulefile.MaxText+1)},
		{Name: "e.yaml", Text: []byte("domain: \xff")},
	}, false)
	require.EqualError(t, faults, strings.TrimSpace(`
a.yaml:2: unknown field "version"
a.yaml:4: key must be text, not the number "1.5": write quotes around it
a.yaml:4: a descriptor has no key
a.yaml:5: name must be text, not a list
a.yaml:5: the unit "x" does not exist: it is second, minute, hour, day, week, month or year
a.yaml:6: shadow_mode must be true or false, not the text "yes"
a.yaml:6: metadata must be a mapping
a.yaml:7: unit must be text, not the number "1.5": write quotes around it
a.yaml:8: value must be text, not the number "99999999999999999999": write quotes around it
a.yaml:9: an entry of domain must be a mapping, not the text "x"
a.yaml:10: unknown field "a"
b.yaml:1: the domain "rl" is in a.yaml, too
c.yaml:1: the text is empty
d.yaml:1: the text is longer than 16777216 bytes
e.yaml:1: the text is not UTF-8
`))
}

// TestEqualNames: two rules whose policies have the same name are a fault.
func TestEqualNames(t *testing.T) {
	name := rls.NameOf("d", "a", "b.c") // rls.d.a.b_c-12345678
	_, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte("domain: d\ndescriptors:\n" +
		"- key: a\n  descriptors:\n  - {key: b.c, rate_limit: {unit: day}}\n  - {key: " + strings.TrimPrefix(name, "rls.d.a.") + ", rate_limit: {unit: day}}")}}, false)
	require.EqualError(t, faults, `a.yaml:6: the policy of "d.a.`+strings.TrimPrefix(name, "rls.d.a.")+`" has the name of that of "d.a.b.c" in a.yaml:5: `+name)
}

// rules returns a file with n limits.
func rules(n int) string {
	var text strings.Builder
	text.WriteString("domain: rl\ndescriptors:\n")
	for i := range n {
		fmt.Fprintf(&text, "- {key: k, value: %d, rate_limit: {unit: day, requests_per_unit: 1}}\n", i)
	}
	return text.String()
}

// TestBounds: the number of rules, of nodes that aliases add, and of faults is bounded.
func TestBounds(t *testing.T) {
	effort.Alone(t)
	begun := effort.CPU()
	_, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte(rules(rls.MaxRules + 1))}}, false)
	require.EqualError(t, faults, "a.yaml:100003: there are more than 100000 limits")
	require.Less(t, effort.CPU()-begun, 30*time.Second)

	text := "domain: a\nmetadata:\n- &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("- &a%d [%s*a%d]\n", i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	_, _, _, faults = rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte(text)}}, false)
	require.ErrorContains(t, faults.Err(), "aliases stand for more than 10000 values")

	_, _, _, faults = rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte("domain: a\ndescriptors:\n" + strings.Repeat("- {}\n", 500))}}, false)
	require.Len(t, faults, strict.MaxFaults)
	_, remarks, omitted, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte("domain: a\ndescriptors:\n- {key: a, domain: [" + strings.Repeat("{unit: a, unit: b},", 5) + "]}\n" + strings.Repeat("unit: 5\n", 300))}}, false)
	require.NoError(t, faults.Err())
	require.Len(t, remarks, rulefile.MaxRemarks)
	require.Equal(t, 1+300+299-rulefile.MaxRemarks, omitted)
}

// FuzzLoad: no text causes a panic, and the rules of an accepted one are valid policies with different names.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		shop, "domain: rl\ndescriptors:\n - &x {key: a, rate_limit: {unit: minute, requests_per_unit: 1}}\n - {<<: *x, key: b}\n",
		"domain: \"\\0\"\ndescriptors: [{key: ': ', rate_limit: {unit: year, requests_per_unit: 0}, metadata: {a: [b], 5: 1.5, c: 2020-01-01, d: {a: ~}}}]",
		"domain: [", "domain: &a b\ndescriptors: *a", "[{]", "domain: 1\ndescriptors: ~", "domain: a\ndescriptors: [{key: " + strings.Repeat("ü", 2000) + ", rate_limit: {unlimited: true}}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, _, faults := rls.Load([]rulefile.File{{Name: "a", Text: text}}, true)
		if c == nil {
			require.NotEmpty(t, faults)
			return
		}
		names := map[string]bool{}
		for _, r := range c.Rules() {
			require.NoError(t, r.Entry().Check())
			require.False(t, names[r.Policy])
			names[r.Policy] = true
		}
	})
}
