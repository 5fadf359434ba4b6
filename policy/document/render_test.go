package document_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
)

// TestAppend: the output is sorted, quoted where necessary, and has one form for each content.
func TestAppend(t *testing.T) {
	d, faults := parse(whole)
	require.NoError(t, faults.Err())
	slices.Reverse(d.Policies)
	require.Equal(t, `policies:
  api:
    comment: what everybody gets
    limits: [TB 200 100 1, SW 100000 86400 FIXED]
    overrides:
      "4711":
        ms: true
        limits: [TB 1 1 1]
        expires: 2026-12-01T00:00:00.5Z
      acme:
        comment: contract 17
        limits: [TB 2000 1000 1]
      "free-*":
        limits: [TB 20 10 1]
        expires: 2026-12-01T00:00:00Z
  jobs:
    ms: true
    limits: [CC 5 60000]
    overrides:
      slow:
        ms: false
        limits: [CC 5 60]
      "true":
        limits: [CC 7 60000]
`, string(d.Append(nil)))
	require.Equal(t, "policies: {}\n", string(new(document.Document).Append(nil)))
}

// hostile are texts that unquoted YAML reads as something else, or not at all.
var hostile = []string{
	"", " ", " a", "a ", "a: b", "a #b", "#", "'", `"`, `\`, `\n`, "yes", "No", "ON", "y", "~", "null", "NULL", "true", "1e3", "0x1F", "0o7", "007", "1_000", ".5", "+1",
	"-", "- a", "? a", ": a", "!!str a", "!a", "&a", "*a", "*", "<<", "=", "%TAG", "---", "...", "--- a", "{", "}", "[", "]", ",", "a, b", "`", "@", "|", ">", "2026-12-01", "12:30:45", ".inf", ".NaN", "inf",
	"größe", "\u2028", "\u0085", "\ufeff", "\U0001f600", "a\u200db", "\u202e", "\ufffd", "\ue000",
	strings.Repeat("k", 1024), strings.Repeat("\u0080", 512), strings.Repeat("\"", 1024),
}

// hostileBytes may only be in patterns.
var hostileBytes = []string{"\x00", "\n", "\r\n", "\t", "a\nb: c\n", "\x7f", "\x1b[0m", "\xff", "a\xc3", "\xed\xa0\x80", strings.Repeat("\xff", 1024), strings.Repeat("\x00", 1024)}

// TestHostileTextSurvives: each text survives as the only pattern and comment.
func TestHostileTextSurvives(t *testing.T) {
	for _, text := range slices.Concat(hostile, hostileBytes) {
		o := document.Override{Pattern: text, Limits: []string{"TB 1 1 1"}}
		if !strings.ContainsFunc(text, unicode.IsControl) && slices.Contains(hostile, text) {
			o.Comment = text
		}
		if text == "" {
			o.Pattern = "*"
		}
		checkRoundTrip(t, &document.Document{Policies: []document.Policy{{
			Name: "a", Comment: o.Comment, Limits: o.Limits, Overrides: []document.Override{o},
		}}})
	}
}

// TestAnyDocumentSurvives: Parse reads the output of Append back as an equal document, which
// Append formats alike.
func TestAnyDocumentSurvives(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom(hostile), rapid.StringN(0, 40, 200))
	comment := rapid.Map(text, func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return 'c'
			}
			return r
		}, s)
	})
	pattern := rapid.OneOf(text, rapid.SampledFrom(hostileBytes), rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 30), func(b []byte) string { return string(b) })).
		Filter(func(s string) bool { return s != "" })
	limits := rapid.SliceOfN(rapid.SampledFrom([]string{"TB 200 100 1", "SW 5 60", "SW 7 60 FIXED ANCHOR FIRST", "CL 15 30 60", "CC 5 60"}), 1, 4)
	override := rapid.Custom(func(t *rapid.T) document.Override {
		o := document.Override{Pattern: pattern.Draw(t, "pattern"), Comment: comment.Draw(t, "comment"), Millis: rapid.Bool().Draw(t, "ms"), Limits: limits.Draw(t, "limits")}
		if rapid.Bool().Draw(t, "ends") {
			o.Expires = time.Unix(0, rapid.Int64Min(0).Draw(t, "expires")).UTC()
		}
		return o
	})
	pol := rapid.Custom(func(t *rapid.T) document.Policy {
		var key policy.KeyForm
		limits, override := limits, override
		if rapid.IntRange(0, 3).Draw(t, "key") == 0 {
			key, override = policy.KeyForm{IP: true, V4: 24, V6: 56}, rapid.Map(override, func(o document.Override) document.Override {
				o.Pattern = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(len(o.Pattern))}), 32).String()
				return o
			})
		}
		var classes []policy.Class
		for i := range rapid.IntRange(0, 16).Draw(t, "classes") {
			classes = append(classes, policy.Class{Name: rapid.SampledFrom([]string{"a", "on", "1", "-", "null", "web.batch"}).Draw(t, "class") + strconv.Itoa(i), Keep: rapid.Int64Range(0, 100).Draw(t, "keep")})
		}
		classText, _ := policy.ClassText(classes)
		if rapid.IntRange(0, 3).Draw(t, "bans") == 0 {
			limits = rapid.Map(limits, func(all []string) []string { return append(slices.Clone(all), "BAN 5 60 600 FACTOR 1.5 MAX 3600") })
		}
		return document.Policy{
			Name:    rapid.StringMatching(`[A-Za-z0-9_.-]{1,64}`).Draw(t, "name"),
			Comment: comment.Draw(t, "comment"), Millis: rapid.Bool().Draw(t, "ms"), Flags: policy.Flags{Shadow: rapid.Bool().Draw(t, "shadow"), Count: rapid.Bool().Draw(t, "count"), Key: key, Notify: rapid.Int64Range(0, 100).Draw(t, "notify"), Classes: classText}, Limits: limits.Draw(t, "limits"),
			Overrides: rapid.SliceOfNDistinct(override, 0, 5, func(o document.Override) string { return o.Pattern }).Draw(t, "overrides"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		checkRoundTrip(t, &document.Document{Policies: rapid.SliceOfNDistinct(pol, 0, 5, func(p document.Policy) string { return p.Name }).Draw(t, "policies")})
	})
}

// checkRoundTrip writes, parses, compares and writes again. Another YAML library reads the text in
// the same way.
func checkRoundTrip(t require.TestingT, d *document.Document) {
	text := string(d.Append(nil))
	got, faults := parse(text)
	require.NoError(t, faults.Err(), text)
	require.Empty(t, document.Diff(d, got), text)
	require.Empty(t, document.Diff(got, d), text)
	require.Equal(t, text, string(got.Append(nil)))
	require.Equal(t, plain(d), plain(got), text)
	var any map[string]map[string]map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &any))
	for i := range d.Policies {
		p := &d.Policies[i]
		require.Contains(t, any["policies"], p.Name)
		if p.Comment != "" {
			require.Equal(t, p.Comment, any["policies"][p.Name]["comment"])
		}
	}
}

// plain returns d sorted and without lines.
func plain(d *document.Document) document.Document {
	copied := document.Document{Policies: slices.Clone(d.Policies)}
	slices.SortFunc(copied.Policies, func(a, b document.Policy) int { return strings.Compare(a.Name, b.Name) })
	for i := range copied.Policies {
		p := &copied.Policies[i]
		p.Line, p.Overrides = 0, append([]document.Override{}, p.Overrides...)
		slices.SortFunc(p.Overrides, func(a, b document.Override) int { return strings.Compare(a.Pattern, b.Pattern) })
		for j := range p.Overrides {
			p.Overrides[j].Line = 0
		}
	}
	copied.Policies = append([]document.Policy{}, copied.Policies...)
	return copied
}

// FuzzParse: no text causes a panic, and a parsed document is formatted such that it parses as
// the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		whole, "", "policies: {}", "\ufeffpolicies: {}\r\n", "policies:\r\n  a:\r\n    limits: [TB 1 1 1]\r\n",
		"policies:\n  a: &a {limits: [TB 1 1 1]}\n  b: *a\n", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
		"policies:\n  <<: [{a: {}}, {a: {}}]\n", "policies:\n  a: {}\n  a: {}\n", "policies:\n\ta: {}\n", strings.Repeat("[", 300), strings.Repeat("{a: ", 300),
		strings.Repeat("- ", 300), "? ? ? a\n", "%YAML 1.1\n--- {policies: {}}\n...\n", "policies: {a: {comment: !!binary aGk=, limits: [SW 1 1]}}",
		"policies:\n  a:\n    limits: [TB 1 1 1]\n    comment: |\n      x\n    overrides: {? [a] : b, ~: {}, '': {}}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, faults := document.Parse("p.yaml", text, bounds)
		if d == nil {
			require.NotEmpty(t, faults)
			_ = faults.Error()
			return
		}
		require.Empty(t, faults)
		checkRoundTrip(t, d)
	})
}

// TestLongTextsTakeNoLongTime: texts of a megabyte that may be slow for a parser are parsed in a
// short time.
func TestLongTextsTakeNoLongTime(t *testing.T) {
	start := "policies:\n  a:\n    limits: [TB 1 1 1]\n    overrides:\n      x: "
	for _, unit := range []string{
		"[", "{", "{a: ", "- ", "? ", ": ", "a: ", "#\n", "\n", " ", "\t", "\"", "'", "&a ", "*a ", "!a ", "[a,#x\n", "- a\n", "a\n", "[],", "{},", "\\x41",
		"%a\n", "---\n", "|\n", "<<: {}\n", "      y: {limits: [TB 1 1 1]}\n", "      ? y\n      : {}\n",
	} {
		for _, before := range []string{"", start, start + "["} {
			begun := effort.CPU()
			parse(before + strings.Repeat(unit, (document.MaxText-len(before))/len(unit)))
			require.Less(t, effort.CPU()-begun, 20*time.Second, "%q behind %q", unit, before)
		}
	}
	var text strings.Builder
	text.WriteString("policies:\n  a:\n    limits: [TB 1 1 1]\n    overrides:\n")
	for i := 0; text.Len() < document.MaxText-100; i++ {
		text.WriteString("      " + strings.Repeat("x", i%7) + time.Duration(i).String() + ": {limits: [TB 1 1 1]}\n")
	}
	d, faults := parse(text.String())
	require.NoError(t, faults.Err())
	require.Greater(t, len(d.Policies[0].Overrides), 20_000)
}

// TestAppendCalendar: a window of a calendar is in the text as in the policy, with the zone as in tzdata.
func TestAppendCalendar(t *testing.T) {
	d, faults := document.Parse("f.yaml", []byte("policies: {api: {ms: true, limits: [sw 5 Month zone europe/BERLIN from 31, SW 5 day calls]}}"), policy.Bounds{})
	require.Empty(t, faults)
	const want = "policies:\n  api:\n    ms: true\n    limits: [SW 5 MONTH ZONE Europe/Berlin FROM 31, SW 5 DAY CALLS]\n"
	require.Equal(t, want, string(d.Append(nil)))
	_, faults = document.Parse("f.yaml", []byte("policies: {api: {limits: [SW 5 MONTH ZONE Berlin]}}"), policy.Bounds{})
	require.Contains(t, faults.Error(), `f.yaml:1: limit "SW 5 MONTH ZONE Berlin": value is no time zone: ZONE is 'Berlin'`)
}
