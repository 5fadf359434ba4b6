package document_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
)

const whole = `# limits of the shop
policies:
  api:
    comment: what everybody gets
    shadow: false
    limits: [TB 200 100 1, sw 100000  86400 fixed]
    overrides:
      acme:
        comment: "contract 17"
        limits: [TB 2000 1000 1]
      "free-*":
        limits:
          - TB 20 10 1
        expires: 2026-12-01T01:00:00+01:00
      4711: {limits: [TB 1 1 1], expires: "2026-12-01T00:00:00.5Z", ms: true}
  jobs:
    limits: [CC 5 60000]
    ms: true
    overrides:
      slow:
        limits: [CC 5 60]
        ms: false
      true: {limits: [CC 7 60000]}
`

// TestParse parses each field in each form.
func TestParse(t *testing.T) {
	d, faults := parse(whole)
	require.NoError(t, faults.Err())
	december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, &document.Document{Policies: []document.Policy{
		{
			Name: "api", Comment: "what everybody gets", Limits: []string{"TB 200 100 1", "SW 100000 86400 FIXED"}, Line: 3,
			Overrides: []document.Override{
				{Pattern: "acme", Comment: "contract 17", Limits: []string{"TB 2000 1000 1"}, Line: 8},
				{Pattern: "free-*", Limits: []string{"TB 20 10 1"}, Expires: december, Line: 11},
				{Pattern: "4711", Millis: true, Limits: []string{"TB 1 1 1"}, Expires: december.Add(time.Second / 2), Line: 15},
			},
		},
		{
			Name: "jobs", Millis: true, Limits: []string{"CC 5 60000"}, Line: 16,
			Overrides: []document.Override{
				{Pattern: "slow", Limits: []string{"CC 5 60"}, Line: 20},
				{Pattern: "true", Millis: true, Limits: []string{"CC 7 60000"}, Line: 23},
			},
		},
	}}, d)

	for _, text := range []string{"policies: {}", "--- # one\npolicies: {}\n...\n", "\ufeffpolicies: {}\r\n"} {
		d, faults := parse(text)
		require.NoError(t, faults.Err())
		require.Empty(t, d.Policies)
	}
}

// TestEveryFaultIsToldWithItsLine: one text with all kinds of faults.
func TestEveryFaultIsToldWithItsLine(t *testing.T) {
	d, faults := parse(`policies:
  "a b":
    limits: [TB 200 100 1]
  api:
    limit: [TB 200 100 1]
    shadow: yes
    ms: 1
    comment: 17
  api:
    limits: [TB 200 100 1]
  more:
    limits:
      - TB 200 x 1
      - 5
      - [TB 1 1 1]
      - TB 1 1 1 SW 5 60
      - SW 5 60 2
      - MS
    overrides:
      x: {limits: [], expires: tomorrow}
      y: {limits: TB 1 1 1, expires: 2026-12-01, shadow: true}
      "": {limits: [TB 1 1 1], expires: 3026-12-01T00:00:00Z}
      ~: {}
      z:
      [q]: {}
  none:
    limits:
  control:
    comment: "a\tb"
  many:
    limits: [` + strings.Repeat("TB 1 1 1, ", 17) + `]
version: 1
`)
	require.Nil(t, d)
	require.Equal(t, strings.TrimSpace(`
p.yaml:2: the name of a policy has 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'
p.yaml:4: limits is missing
p.yaml:5: unknown field "limit": a policy has comment, ms, shadow, count, key, notify, classes, limits and overrides
p.yaml:6: shadow must be true or false, not the text "yes"
p.yaml:7: ms must be true or false, not "1"
p.yaml:8: comment must be text, not "17": write quotes around it
p.yaml:9: "api" is there twice: its first is in line 4
p.yaml:13: limit "TB 200 x 1": value is not an integer or out of range: count is 'x', must be an integer
p.yaml:14: a limit must be text, not "5": write quotes around it
p.yaml:15: a limit must be text, not a list
p.yaml:16: limit "TB 1 1 1 SW 5 60": there are 2 clauses: write each as a limit of its own
p.yaml:17: limit "SW 5 60 2": a clause of a policy has no quantity
p.yaml:18: limit "MS": syntax error near 'MS'
p.yaml:20: expires must be a time such as 2026-12-31T23:59:59Z, not "tomorrow"
p.yaml:20: limits must have a clause, such as TB 200 100 1
p.yaml:21: expires must be a time such as 2026-12-31T23:59:59Z, not "2026-12-01"
p.yaml:21: unknown field "shadow": an override has comment, ms, limits and expires
p.yaml:21: limits must be a list, not the text "TB 1 1 1"
p.yaml:22: expires must be from 1970 to 2261
p.yaml:22: a pattern has 1 to 1024 bytes
p.yaml:23: a key must not be null: write quotes around it
p.yaml:24: an override must be a mapping, not empty
p.yaml:25: a key must be text, not a list
p.yaml:27: limits must be a list, not empty
p.yaml:28: limits is missing
p.yaml:29: a comment has at most 1024 bytes of UTF-8 without control characters
p.yaml:31: limits: too many clauses, at most 16
p.yaml:32: unknown field "version": there is nothing beside policies
`), faults.Error())
}

// TestUnsafeTextIsRefused: features of YAML beyond plain data, and text that is not YAML, are
// refused.
func TestUnsafeTextIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "1: the text is empty",
		"# nothing\n":                     "1: the text is empty",
		"~":                               "1: the text must be a mapping, not empty",
		"[]":                              "1: the text must be a mapping, not a list",
		"policies: []":                    "1: policies must be a mapping, not a list",
		"{}":                              "1: policies is missing",
		"a: &a {}":                        "1: an anchor (&name) is not allowed",
		"a: *a":                           "1: the YAML is not valid: unknown anchor 'a' referenced",
		"policies:\n  <<: {}":             "2: a merge key (<<) is not allowed",
		"policies: !!map {}":              "1: a tag is not allowed",
		"policies: !x {}":                 "1: a tag is not allowed",
		"policies: {}\n---\npolicies: {}": "2: a second document begins here",
		"policies:\n\tapi: {}":            "2: the YAML is not valid: found character that cannot start any token",
		"policies: {}\n\xff":              "2: the text is not UTF-8",
		"policies: {}\n#" + strings.Repeat("x", 1<<20):                  "1: the text is longer than 1048576 bytes",
		strings.Repeat("[", 200) + strings.Repeat("]", 200):             "1: mappings and lists are nested deeper than 100",
		strings.Repeat("[", 1<<20):                                      "1: the YAML is not valid: exceeded max depth of 10000",
		"policies:\n  a: {limits: [TB 1 1 1], comment: !!binary \"*\"}": "2: a !!binary value must be base64",
	} {
		d, faults := parse(text)
		require.Nil(t, d)
		require.NotEmpty(t, faults, "%.40q", text)
		require.True(t, strings.HasPrefix(faults[0].Error(), "p.yaml:"+want), "%.40q: %s", text, faults)
	}
}

// TestBounds: the maximum numbers of policies, faults and bytes are accepted, and no more.
func TestBounds(t *testing.T) {
	var text strings.Builder
	text.WriteString("policies:\n")
	for i := range document.MaxPolicies {
		text.WriteString("  a" + strings.Repeat("b", i%40) + string(rune('a'+i/40%26)) + string(rune('a'+i/1040)) + ": {limits: [TB 1 1 1]}\n")
	}
	d, faults := parse(text.String())
	require.NoError(t, faults.Err())
	require.Len(t, d.Policies, document.MaxPolicies)
	_, faults = parse(text.String() + "  last: {limits: [TB 1 1 1]}\n")
	require.EqualError(t, faults, "p.yaml:10002: there are more than 10000 policies")

	_, faults = parse("policies:\n" + strings.Repeat("  a: {}\n", 1000))
	require.Len(t, faults, 100)
	require.EqualError(t, faults[99], "p.yaml:101: there are more faults, which are not shown")
	long := "policies:\n  a:\n    limits: [TB 1 1 1]\n    overrides:\n" + strings.Repeat("#", document.MaxText)
	_, faults = parse(long)
	require.Len(t, faults, 1)
	_, faults = document.ParseUpTo("p.yaml", []byte(long), 2*document.MaxText, bounds)
	require.EqualError(t, faults, "p.yaml:4: overrides must be a mapping, not empty")
}

func parse(text string) (*document.Document, document.Faults) {
	return document.Parse("p.yaml", []byte(text), bounds)
}

var bounds = policy.Bounds{LogMaxEntries: 10_000, MaxMembers: 10_000}

// TestKeysOfAddresses: key makes patterns networks, wherever it stands, and two texts of one network are one pattern.
func TestKeysOfAddresses(t *testing.T) {
	d, faults := parse(`policies:
  api:
    overrides:
      10.0.0.9/8: {limits: [TB 1 1 1]}
      "::ffff:10.0.0.7": {limits: [TB 2 1 1]}
      "*": {limits: [TB 3 1 1]}
    limits: [TB 200 100 1]
    key: ip 24  056
`)
	require.NoError(t, faults.Err())
	const want = `policies:
  api:
    key: IP 24 56
    limits: [TB 200 100 1]
    overrides:
      "*":
        limits: [TB 3 1 1]
      "10.0.0.0/8":
        limits: [TB 1 1 1]
      "10.0.0.7/32":
        limits: [TB 2 1 1]
`
	require.Equal(t, want, string(d.Append(nil)))
	again, faults := parse(want)
	require.NoError(t, faults.Err())
	require.Empty(t, document.Diff(d, again))
	without, faults := parse(strings.ReplaceAll(want, "    key: IP 24 56\n", ""))
	require.NoError(t, faults.Err())
	changes := document.Diff(without, d)
	require.Len(t, changes, 1)
	require.Equal(t, "{key: IP 24 56, limits: [TB 200 100 1]}", changes[0].After)

	_, faults = parse(`policies:
  api:
    key: IP 24 56
    limits: [TB 200 100 1]
    overrides:
      acme: {limits: [TB 1 1 1]}
      10.0.0.7: {limits: [TB 1 1 1]}
      10.0.0.*: {limits: [TB 1 1 1]}
      10.0.0.7/32: {limits: [TB 1 1 1]}
  b: {limits: [TB 1 1 1], key: IP 33 56}
  c: {limits: [TB 1 1 1], key: [IP, 32, 56]}
`)
	require.Equal(t, `p.yaml:6: "acme": a pattern of a policy with KEY IP is '*', an IP address or a network such as 10.0.0.0/8
p.yaml:8: "10.0.0.*": a pattern of a policy with KEY IP is '*', an IP address or a network such as 10.0.0.0/8
p.yaml:9: "10.0.0.7/32" is there twice: its first is in line 7
p.yaml:10: key must be IP with the lengths of networks for IPv4 and IPv6, such as IP 32 56, not "IP 33 56"
p.yaml:11: key must be text, not a list`, faults.Error())
}
