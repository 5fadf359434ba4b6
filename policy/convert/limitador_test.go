package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy/convert"
)

// TestFromLimitador converts each feature of such a file.
func TestFromLimitador(t *testing.T) {
	require.Equal(t, `# Policies from shop.yaml, for Limitador.
# This is how they are called. <x> is the value of x, and a slash joins the parts of a key:
# choose another sign if values have slashes.
#
#   namespace shop
#     RL.USE shop all
#
#   namespace shop
#     if descriptors[0].method == 'POST'
#     if descriptors[0].path != '/free'
#     RL.USE shop.plan.user.user.region <plan>/<user>/<user.region>
#
#   namespace other
#     RL.USE other all
#
#   namespace shop, as one call, which charges all policies or none
#     if a condition of a policy does not hold, without that policy
#     RL.USE shop all AND shop.plan.user.user.region <plan>/<user>/<user.region>
#
# What is not as it was:
#   shop.yaml:9: conditions: the caller has to know whether they hold, and calls policy shop.plan.user.user.region if all do
#   shop.yaml:25: limit: there is one like it with the same seconds, which is in force
#   shop.yaml:32: "burst": the field is not known
#   shop.yaml:32: max_value: 1, seconds: 0: it does not convert: value is out of range, must be positive: window is '0', must be an integer of at least 1, in seconds, or with MS in milliseconds
policies:
  other:
    limits: [SW 0 5 FIXED ANCHOR FIRST]
  shop:
    comment: all of them
    limits: [SW 1000000 60 FIXED ANCHOR FIRST]
  shop.plan.user.user.region:
    comment: "per user, 17"
    limits: [SW 5 60 FIXED ANCHOR FIRST, SW 50 3600 FIXED ANCHOR FIRST]
`, converted(t, convert.FromLimitador, `---
# a comment
- namespace: shop
  name: all of them
  max_value: 1000000
  seconds: 60
  conditions:
  variables:
- namespace: shop
  name: per user
  id: 17
  max_value: 5
  seconds: 60
  conditions:
    - "descriptors[0].method == 'POST'"
    - "descriptors[0].path != '/free'"
  variables: ["descriptors[0]['user']", "descriptors[0].plan", user.region]
- namespace: shop
  name: per user
  max_value: 50
  seconds: 3600
  conditions: ["descriptors[0].path != '/free'", "descriptors[0].method == 'POST'"]
  variables: ["descriptors[0].plan", "descriptors[0]['user']", user.region, user.region]

- namespace: shop
  max_value: 7
  seconds: 60
  conditions: []
  variables: []

- {namespace: other, seconds: 5, conditions: [], variables: []}
- {namespace: third, max_value: 1, seconds: 0, burst: 9, conditions: [], variables: []}
`))
}

// TestLimitadorWithManyLimits: policies that have more clauses than a call may have are not joined.
func TestLimitadorWithManyLimits(t *testing.T) {
	var text strings.Builder
	for i := range 65 {
		fmt.Fprintf(&text, "- {namespace: n, max_value: 1, seconds: %d, conditions: [], variables: [v%d]}\n", i+1, i%5)
		if i == 63 {
			require.Contains(t, converted(t, convert.FromLimitador, text.String()), "\n#     RL.USE n.v0 <v0> AND n.v1 <v1> AND n.v2 <v2> AND n.v3 <v3> AND n.v4 <v4>\n")
		}
	}
	many := converted(t, convert.FromLimitador, text.String())
	require.NotContains(t, many, "<v0> AND")
	require.Contains(t, many, "#   shop.yaml:2: namespace n: Limitador charges nothing if one limit denies. RL.USE does so for policies with at most 64 clauses in all,")
}

// TestLimitadorFaults: faults are reported with all lines.
func TestLimitadorFaults(t *testing.T) {
	for text, want := range map[string]string{
		"kind: ConfigMap": "l.yaml:1: the text must be a list of limits. In a ConfigMap it is the text below data",
		"- namespace: a\n  max_value: -1\n  seconds: x\n  conditions: a\n- text\n- {namespace: [], seconds: 1.5, variables: [[]]}\n": `
l.yaml:1: variables is missing
l.yaml:2: max_value must be from 0 to 9223372036854775807, not "-1"
l.yaml:3: seconds must be a whole number, not the text "x"
l.yaml:4: conditions must be a list, not the text "a"
l.yaml:5: a limit must be a mapping, not the text "text"
l.yaml:6: namespace must be text, not a list
l.yaml:6: seconds must be a whole number, not "1.5"
l.yaml:6: variables must be text, not a list
l.yaml:6: conditions is missing`,
		"":            "l.yaml:1: the text is empty",
		"x: &a\n- *b": "l.yaml:1: the YAML is not valid: unknown anchor 'b' referenced",
	} {
		_, faults := convert.FromLimitador([]convert.File{{Name: "l.yaml", Text: []byte(text)}})
		require.EqualError(t, faults, strings.TrimSpace(want))
	}
}
