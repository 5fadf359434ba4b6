package rls_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// rulesOf returns the rules of a file.
func rulesOf(t *testing.T, text string) *rls.Config {
	t.Helper()
	c, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte(text)}}, false)
	require.NoError(t, faults.Err())
	return c
}

// hitsOf returns the hits of a request for descriptors with these entries, "key=value", by the decisions.
func hitsOf(t *testing.T, c *rls.Config, hits uint64, decisions []rls.Decision, entries ...string) (all []rls.Hits) {
	t.Helper()
	r := rls.Request{Domain: []byte("d"), Hits: hits}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		r.Descriptors = append(r.Descriptors, rls.Descriptor{Entries: []rls.Entry{{Key: []byte(key), Value: []byte(value)}}})
	}
	var p rls.Plan
	require.NoError(t, c.Plan(&r, &p))
	require.Len(t, decisions, len(p.Charges))
	p.Hits(rls.Options{Near: 80}, decisions, func(_ *rls.Rule, h rls.Hits) { all = append(all, h) })
	return all
}

func TestHits(t *testing.T) {
	c := rulesOf(t, `domain: d
descriptors:
- {key: ten, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: dark, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: none, rate_limit: {unit: minute, requests_per_unit: 0}}
- {key: free, rate_limit: {unlimited: true}}
- {key: by, rate_limit: {unit: minute, requests_per_unit: 10, name: by}}
- {key: instead, rate_limit: {unit: minute, requests_per_unit: 10, replaces: [{name: by}]}}
`)
	within := func(remaining int64) []rls.Decision { return []rls.Decision{{Limit: 10, Remaining: remaining}} }
	for _, is := range []struct {
		what      string
		hits      uint64
		decisions []rls.Decision
		entries   string
		want      []rls.Hits
	}{
		{"within", 1, within(2), "ten", []rls.Hits{{Total: 1, Within: 1}}},
		{"near", 1, within(1), "ten", []rls.Hits{{Total: 1, Within: 1, Near: 1}}},
		{"some of them are near", 5, within(1), "ten", []rls.Hits{{Total: 5, Within: 5, Near: 1}}},
		{"all of them are near", 1, within(0), "ten", []rls.Hits{{Total: 1, Within: 1, Near: 1}}},
		{"over", 3, []rls.Decision{{Denied: true, Over: true, Limit: 10}}, "ten", []rls.Hits{{Total: 3, Over: 3}}},
		{"blocked", 1, []rls.Decision{{Denied: true, Limit: 10, Remaining: 9}}, "ten", []rls.Hits{{Total: 1, Over: 1}}},
		{"exempt", 1, []rls.Decision{{Over: true, Limit: 10}}, "ten", []rls.Hits{{Total: 1, Within: 1, Near: 1}}},
		{"shadow", 1, []rls.Decision{{Over: true, Limit: 10}}, "dark", []rls.Hits{{Total: 1, Over: 1, Shadow: 1}}},
		{"a blocked shadow", 1, []rls.Decision{{Denied: true, Limit: 10}}, "dark", []rls.Hits{{Total: 1, Over: 1}}},
		{"a limit of 0", 1, []rls.Decision{{Denied: true, Over: true}, {Limit: 1}}, "none", []rls.Hits{{Total: 1, Over: 1}}},
		{"unlimited", 1, []rls.Decision{{Limit: math.MaxUint32, Remaining: math.MaxUint32}}, "free", nil},
		{"unlimited with an override", 1, within(9), "free", []rls.Hits{{Total: 1, Within: 1}}},
		{"replaced", 1, within(9), "by instead", []rls.Hits{{Total: 1, Within: 1}}},
		{"no rule", 1, nil, "other", nil},
		{"large numbers", 1, []rls.Decision{{Limit: math.MaxInt64, Remaining: 1}}, "ten", []rls.Hits{{Total: 1, Within: 1, Near: 1}}},
	} {
		require.Equal(t, is.want, hitsOf(t, c, is.hits, is.decisions, strings.Fields(is.entries)...), is.what)
	}
	look := rls.Request{Domain: []byte("d"), Descriptors: []rls.Descriptor{{Entries: []rls.Entry{{Key: []byte("ten")}}, HasHits: true}}}
	own := rls.Request{Domain: []byte("d"), Descriptors: []rls.Descriptor{{Entries: []rls.Entry{{Key: []byte("ten")}}, HasOwn: true, Own: rls.Own{Requests: 1, Unit: 1}}}}
	for _, r := range []rls.Request{look, own} {
		var p rls.Plan
		require.NoError(t, c.Plan(&r, &p))
		p.Hits(rls.Options{}, within(0), func(*rls.Rule, rls.Hits) { require.Fail(t, "a call of 0 hits, or a limit of the request") })
	}
}

func TestSeries(t *testing.T) {
	for _, is := range []struct {
		domain string
		path   []string
		want   rls.Series
	}{
		{"d", []string{"foo"}, rls.Series{Domain: "d", Key1: "foo"}},
		{"d", []string{"foo_x", "bar", "baz"}, rls.Series{Domain: "d", Key1: "foo_x", Key2: "bar"}},
		{"my.domain", []string{"foo"}, rls.Series{Domain: "my", Key1: "domain", Key2: "foo"}},
		{"d", []string{"path_10.0.0.1", "a:b|c"}, rls.Series{Domain: "d", Key1: "path_10_0_0_1", Key2: "a_b_c"}},
		{"d", []string{strings.Repeat("ä", 100)}, rls.Series{Domain: "d", Key1: strings.Repeat("ä", 64)}},
		{"d", []string{"x" + strings.Repeat("ä", 100)}, rls.Series{Domain: "d", Key1: "x" + strings.Repeat("ä", 63) + "_"}},
	} {
		require.Equal(t, is.want, (&rls.Rule{Domain: is.domain, Path: is.path}).Series())
	}
}

func TestFind(t *testing.T) {
	a, b := rulesOf(t, "domain: d\ndescriptors: [{key: x, rate_limit: {unit: day}}, {key: y, rate_limit: {unit: day}}]"), rulesOf(t, "domain: d\ndescriptors: [{key: y, rate_limit: {unit: hour}}]")
	require.Equal(t, 1, a.Find(a.Rules()[1]))
	require.Equal(t, 0, b.Find(a.Rules()[1]))
	require.Equal(t, -1, b.Find(a.Rules()[0]))
	require.Equal(t, 1, a.Find(b.Rules()[0]))
	require.Equal(t, -1, (*rls.Config)(nil).Find(a.Rules()[0]))
}
