package policy_test

import (
	"strings"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

// entryOf returns a valid entry of a kind for the policy api.
func entryOf(t require.TestingT, kind policy.Kind, pattern string) *policy.Entry {
	e := &policy.Entry{Kind: kind, Policy: "api", Pattern: pattern, Until: limit.MaxInstant}
	switch kind {
	case policy.Main, policy.Candidate, policy.Override:
		e.Limits = limitsOf(t, "TB 200 100 1")
	case policy.Boost:
		e.Factor = 1500
	}
	return e
}

var allKinds = []policy.Kind{policy.Main, policy.Candidate, policy.Override, policy.Boost, policy.Block, policy.Exempt}

func TestKinds(t *testing.T) {
	var names []string
	for _, kind := range allKinds {
		names = append(names, kind.String())
		require.Equal(t, kind >= policy.Override, kind.HasPattern())
	}
	require.Equal(t, []string{"main", "try", "override", "boost", "block", "exempt"}, names)
	require.Equal(t, "kind 6", policy.Kind(6).String())
}

func TestCheckEntry(t *testing.T) {
	for _, kind := range allKinds {
		pattern := ""
		if kind.HasPattern() {
			pattern = "acme*"
		}
		require.NoError(t, entryOf(t, kind, pattern).Check(), kind)
	}
	limits := limitsOf(t, "CL 1 1 1")
	for _, row := range []struct {
		name   string
		kind   policy.Kind
		change func(*policy.Entry)
		want   error
	}{
		{"kind", policy.Main, func(e *policy.Entry) { e.Kind = 6 }, policy.ErrKind},
		{"no name", policy.Main, func(e *policy.Entry) { e.Policy = "" }, policy.ErrName},
		{"name", policy.Block, func(e *policy.Entry) { e.Policy = "a/b" }, policy.ErrName},
		{"no pattern", policy.Override, func(e *policy.Entry) { e.Pattern = "" }, policy.ErrPattern},
		{"long pattern", policy.Block, func(e *policy.Entry) { e.Pattern = strings.Repeat("p", 1025) }, policy.ErrPattern},
		{"pattern of a policy", policy.Main, func(e *policy.Entry) { e.Pattern = "a" }, policy.ErrField},
		{"pattern of a candidate", policy.Candidate, func(e *policy.Entry) { e.Pattern = "a" }, policy.ErrField},
		{"no limits", policy.Override, func(e *policy.Entry) { e.Limits = nil }, policy.ErrField},
		{"limits of a block", policy.Block, func(e *policy.Entry) { e.Limits = limits }, policy.ErrField},
		{"no factor", policy.Boost, func(e *policy.Entry) { e.Factor = 0 }, policy.ErrFactor},
		{"low factor", policy.Boost, func(e *policy.Entry) { e.Factor = -1 }, policy.ErrFactor},
		{"high factor", policy.Boost, func(e *policy.Entry) { e.Factor = policy.MaxFactor + 1 }, policy.ErrFactor},
		{"factor of an override", policy.Override, func(e *policy.Entry) { e.Factor = 1000 }, policy.ErrField},
		{"end of a policy", policy.Main, func(e *policy.Entry) { e.Until = 5 }, policy.ErrField},
		{"end of a candidate", policy.Candidate, func(e *policy.Entry) { e.Until = 5 }, policy.ErrField},
		{"shadow of an override", policy.Override, func(e *policy.Entry) { e.Shadow = true }, policy.ErrField},
		{"key of an override", policy.Override, func(e *policy.Entry) { e.Key.IP = true }, policy.ErrField},
		{"mark of an override", policy.Override, func(e *policy.Entry) { e.Notify = 80 }, policy.ErrField},
		{"mark", policy.Main, func(e *policy.Entry) { e.Notify = 101 }, policy.ErrNotify},
		{"classes of an override", policy.Override, func(e *policy.Entry) { e.Classes = "a 1%" }, policy.ErrField},
		{"classes of a candidate", policy.Candidate, func(e *policy.Entry) { e.Classes = "a 1%" }, policy.ErrField},
		{"classes", policy.Main, func(e *policy.Entry) { e.Classes = "b 1% a 2%" }, policy.ErrClass},
		{"lengths without IP", policy.Main, func(e *policy.Entry) { e.Key.V4 = 24 }, policy.ErrKey},
		{"length of IPv4", policy.Main, func(e *policy.Entry) { e.Key = policy.KeyForm{IP: true, V4: 33} }, policy.ErrKey},
		{"length of IPv6", policy.Main, func(e *policy.Entry) { e.Key = policy.KeyForm{IP: true, V6: 129} }, policy.ErrKey},
		{"file of a boost", policy.Boost, func(e *policy.Entry) { e.File = true }, policy.ErrField},
		{"long comment", policy.Main, func(e *policy.Entry) { e.Comment = strings.Repeat("c", 1025) }, policy.ErrComment},
		{"comment", policy.Main, func(e *policy.Entry) { e.Comment = "a\xff" }, policy.ErrComment},
		{"line in a comment", policy.Main, func(e *policy.Entry) { e.Comment = "a\nb" }, policy.ErrComment},
		{"delete in a comment", policy.Main, func(e *policy.Entry) { e.Comment = "a\x7f" }, policy.ErrComment},
		{"C1 in a comment", policy.Main, func(e *policy.Entry) { e.Comment = "a\u0085" }, policy.ErrComment},
	} {
		pattern := ""
		if row.kind.HasPattern() {
			pattern = "acme"
		}
		e := entryOf(t, row.kind, pattern)
		row.change(e)
		require.ErrorIs(t, e.Check(), row.want, row.name)
	}
	e := entryOf(t, policy.Main, "")
	e.Shadow, e.File, e.Comment = true, true, strings.Repeat("ü", 512)
	require.NoError(t, e.Check())
}

func TestTTL(t *testing.T) {
	const now = limit.Instant(1_700_000_000e9)
	for until, want := range map[limit.Instant]int64{limit.MaxInstant: -1, now - 5e9: 0, now: 0, now + 1: 1, now + 1e9: 1, now + 1e9 + 1: 2} {
		require.Equal(t, want, (&policy.Entry{Until: until}).TTL(now), until)
	}
	require.EqualValues(t, -1, (*policy.Entry)(nil).TTL(now))
}
