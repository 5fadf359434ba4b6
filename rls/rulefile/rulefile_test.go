package rulefile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// TestUnits: the units have the numbers of Envoy's API, and names in any case.
func TestUnits(t *testing.T) {
	for number, name := range []string{"unknown", "second", "minute", "hour", "day", "month", "year", "week", "unknown"} {
		u := rulefile.Unit(number)
		require.Equal(t, name, u.String())
		require.Equal(t, name != "unknown", u.Valid())
		require.Equal(t, u.Valid(), u.Seconds() > 0)
		if u.Valid() {
			require.Equal(t, u, rulefile.UnitOf(name))
		}
	}
	require.Equal(t, rulefile.Week, rulefile.UnitOf("wEEK"))
	require.Zero(t, rulefile.UnitOf("unknown"))
	require.Zero(t, rulefile.UnitOf(""))
}

// TestFields: each field of a descriptor.
func TestFields(t *testing.T) {
	var r rulefile.Reader
	require.Empty(t, r.Read(rulefile.File{Name: "a", Text: []byte(`domain: 5
descriptors:
- key: true
  value: 7
  shadow_mode: y
  share_threshold:
  quota_mode: true
  detailed_metric: on
  value_to_metric: True
  metadata: {a: [1, x, ~, yes, 'yes', {b: 2020-01-01}], 5: 1.5, a: 0x10}
  rate_limit: {unit: Hour, requests_per_unit: , name: n, replaces: [{name: m}, {name: 5}]}
  descriptors: [{key: k, rate_limit: {unlimited: yes}}]
`)}))
	require.Equal(t, []*rulefile.Descriptor{{
		File: "a", Line: 3, Key: "true", Value: "7", Shadow: true, Quota: true, Detailed: true, ValueToMetric: true,
		Limit:    &rulefile.Limit{Unit: rulefile.Hour, Name: "n", Replaces: []string{"m", "5"}},
		Metadata: strict.Struct{{Name: "a", Value: 16.0}, {Name: "5", Value: 1.5}},
		Children: []*rulefile.Descriptor{{File: "a", Line: 12, Key: "k", Limit: &rulefile.Limit{Unlimited: true}}},
	}}, r.Domains[0].Descriptors)
	require.Equal(t, []rulefile.Remark{
		{Kind: rulefile.Values, File: "a", Line: 8, Name: "detailed_metric"}, {Kind: rulefile.Values, File: "a", Line: 9, Name: "value_to_metric"},
	}, r.Remarks)
	require.Equal(t, `a:8: the field "detailed_metric" has no effect on metrics: RL.TOP shows the values of a rule`, r.Remarks[0].String())
	require.Equal(t, "5", r.Domains[0].Name)
	require.Equal(t, "true_7", r.Domains[0].Descriptors[0].Text())
}

// TestStrict: fields without an effect and repeated fields are faults then.
func TestStrict(t *testing.T) {
	r := rulefile.Reader{Strict: true}
	require.EqualError(t, r.Read(rulefile.File{Name: "a", Text: []byte("domain: a\ndomain: a\nunit: x\n---\n")}),
		"a:2: \"domain\" is there twice: its first is in line 1, and the last one counts\na:3: the field \"unit\" has no effect here")
	require.Equal(t, []rulefile.Remark{{Kind: rulefile.Further, File: "a", Line: 4}}, r.Remarks)
}

// TestPatterns: a star is any text, also none.
func TestPatterns(t *testing.T) {
	require.Nil(t, rulefile.NewPattern("abc"))
	for pattern, texts := range map[string]map[string]bool{
		"*":     {"": true, "x": true},
		"**":    {"": true, "x": true},
		"a*":    {"": false, "a": true, "ab": true, "ba": false},
		"*a":    {"": false, "a": true, "ab": false, "ba": true},
		"a*a":   {"a": false, "aa": true, "aba": true},
		"*a*a*": {"a": false, "aa": true, "xaxax": true, "xax": false},
		"a*b*c": {"abc": true, "acb": false, "axbxc": true, "abbc": true, "ac": false},
	} {
		p := rulefile.NewPattern(pattern)
		for text, fits := range texts {
			require.Equal(t, fits, p.Fits([]byte(text)), "%s %s", pattern, text)
		}
	}
}
