package cel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limitador/cel"
	"github.com/cellserver/cellserver/rls"
)

// scope has two descriptors.
func scope() *cel.Scope {
	return &cel.Scope{Descriptors: []rls.Descriptor{
		{Entries: []rls.Entry{{Key: []byte("a"), Value: []byte("x")}, {Key: []byte("b.c"), Value: []byte("größe")}, {Key: []byte("a"), Value: []byte("y")}, {Key: []byte("empty")}}},
		{Entries: []rls.Entry{{Key: []byte("y"), Value: []byte("z")}}},
	}}
}

var name = "n1"

// TestConditions: conditions that hold, and those that do not or have no value.
func TestConditions(t *testing.T) {
	holding := []string{
		"true", " ( true ) ", "!false", "!!true", "1 == 1", "1 != 2", "1 < 2", "2 <= 2", "3 > 2", "3 >= 3", "'a' < 'b'", "null == null", "true != false",
		"descriptors[0].a == 'y'", `descriptors[0]["b.c"] == "größe"`, "descriptors[0].empty == ''", "'x' != descriptors[0]['a']",
		"descriptors[1][descriptors[0].a] == 'z'", "descriptors[0 + 1].y == 'z'", "descriptors[size(descriptors[1])].y == 'z'",
		"descriptors[0].a in ['x', 'y']", "1 in [2, 1]", "!(1 in [])", "true in [false, null, true]", "null in [null]", "'a' in descriptors[0]", "!('q' in descriptors[0])",
		"has(descriptors[0].a)", "!has(descriptors[1].a)",
		"size(descriptors) == 2", "descriptors.size() == 2", "size(descriptors[0]) == 3", "size(descriptors[0]['b.c']) == 7", "'abc'.size() == 3", "size([1, 'a', [true]]) == 3",
		"'abc'.startsWith('ab')", "'abc'.endsWith('bc')", "'abc'.contains('b')", "'abc'.contains('')", "!'abc'.startsWith('b')",
		"'a' + 'b' + descriptors[0].a == 'aby'", "1 + 2 == 3", "('a' + 'b').startsWith('a' + '')",
		"true || descriptors[9].x == 'a'", "!(false && descriptors[0].nothing == 'a')", "false || true && true", "1 == 1 == true",
		"limit.name == 'n1'", "limit['name'] != \"n2\"", "limit.id == null", "limit.id != 'x'", "descriptors[0].a != null",
		`'\'' == "'"`, `"\"\\\n\t\x41\u00e9\U0001F600\101\?"` + " == '\"\\\\\\n\\tAé😀A?'",
	}
	for _, source := range holding {
		e, err := cel.Condition(source, cel.Limit{Name: &name})
		require.NoError(t, err, source)
		require.True(t, e.Holds(scope()), source)
		require.Equal(t, source, e.String())
		require.Positive(t, e.Bytes())
	}
	for _, source := range []string{
		"false", "descriptors[0].nothing == 'a'", "descriptors[0].nothing != 'a'", "!(descriptors[0].nothing == 'a')", "descriptors[2].a == 'a'",
		"!has(descriptors[2].a)", "!('a' in descriptors[2])", "size(descriptors[2]) >= 0", "descriptors[9223372036854775807].a != 'a'",
		"descriptors[0].nothing == 'a' || true", "true && descriptors[0].nothing == 'a'", "'a' in ['a', descriptors[0].nothing]", "size([descriptors[0].nothing]) == 1",
		"9223372036854775807 + 1 != 0", "descriptors[0].a == null", "limit.name == null", "limit.id == 'x'",
	} {
		e, err := cel.Condition(source, cel.Limit{Name: &name})
		require.NoError(t, err, source)
		require.False(t, e.Holds(scope()), source)
	}
}

// TestVariables: the values of variables, as texts.
func TestVariables(t *testing.T) {
	for source, want := range map[string]string{
		"descriptors[0].a": "y", "'x'": "x", "1 + 1": "2", "size(descriptors[0].a) > 2": "false", "true": "true", "null": "null", "descriptors[0].a + descriptors[1].y": "yz", "descriptors[0].empty": "",
	} {
		e, err := cel.Variable(source)
		require.NoError(t, err, source)
		got, exists := e.AppendValue([]byte("-"), scope())
		require.True(t, exists)
		require.Equal(t, "-"+want, string(got), source)
	}
	for _, source := range []string{"descriptors[0].nothing", "descriptors[7].a"} {
		e, err := cel.Variable(source)
		require.NoError(t, err)
		got, exists := e.AppendValue([]byte("-"), scope())
		require.False(t, exists)
		require.Equal(t, "-", string(got))
	}
}

// TestErrors: what is not in the language, and what cannot be evaluated.
func TestErrors(t *testing.T) {
	for source, want := range map[string]string{
		"":                                     "the end is not supported here",
		"true true":                            `"true" is not supported here`,
		"true)":                                `")" is not supported here`,
		"(true":                                `")" is missing before the end`,
		"'a' 'b'":                              `the text "b" is not supported here`,
		"[1, 2":                                `"]" is missing before the end`,
		"descriptors[0].5":                     `"5" is not supported here`,
		"1 ? true : false":                     "'?' is not supported",
		"size('') - 1 == 0":                    "'-' is not supported",
		"1 & 2":                                "'&' is not supported",
		"ä":                                    "'ä' is not supported",
		"1.5 == 1.5":                           `the number at "1.5 == 1.5" is not supported: only whole decimal numbers are`,
		"1u == 1":                              `the number at "1u == 1" is not supported: only whole decimal numbers are`,
		"99999999999999999999 == 1":            "the number 99999999999999999999 is too large",
		"'''a''' == 'a'":                       "text in three quotes is not supported",
		"r'a' == 'a'":                          "text with the prefix r is not supported",
		"'a":                                   `a text has no end: "'a"`,
		"'a\n' == 'a'":                         `a text has no end: "'a\n' == 'a'"`,
		`'\q' == 'a'`:                          `a text has an unknown escape: "\\q"`,
		`'\`:                                   `a text has an unknown escape: "\\"`,
		"x == 'a'":                             "the name x is not known: there are descriptors and, in conditions, limit",
		"int(descriptors[0].a) > 0":            "the function int is not supported",
		"descriptors[0].a.matches('a')":        "the function matches is not supported",
		"descriptors.exists(d, d.a == 'b')":    "the function exists is not supported",
		"1":                                    "a condition must be true or false, not a number",
		"descriptors[0].a":                     "a condition must be true or false, not text",
		"descriptors[0]":                       "a condition must be true or false, not a descriptor",
		"descriptors":                          "a condition must be true or false, not the list of descriptors",
		"null":                                 "a condition must be true or false, not null",
		"!1":                                   "what follows ! must be true or false, not a number",
		"1 || true":                            "the left side of || must be true or false, not a number",
		"true || 1":                            "the right side of || must be true or false, not a number",
		"'' && true":                           "the left side of && must be true or false, not text",
		"true && ''":                           "the right side of && must be true or false, not text",
		"descriptors[0].a == 1":                "== does not compare text with a number",
		"descriptors == descriptors":           "== does not compare the list of descriptors with the list of descriptors",
		"true < false":                         "< does not compare true or false with true or false",
		"1 in 1":                               "behind in must be a list or a descriptor, not a number",
		"1 in ['a']":                           "in does not compare a number with text",
		"[1] in [[1]]":                         "in does not compare a list with a list",
		"1 in descriptors[0]":                  "the key before in must be text, not a number",
		"true + true":                          "+ does not add true or false",
		"1 + '' == 1":                          "the right side of + must be a number, not text",
		"descriptors['a']":                     "the index of descriptors must be a number, not text",
		"descriptors[0][0]":                    "the key of a descriptor must be text, not a number",
		"descriptors[0].a.b == ''":             "text has no fields",
		"size(1) == 1":                         "a number has no size",
		"descriptors[0].startsWith('a')":       "what startsWith is called on must be text, not a descriptor",
		"'a'.endsWith(1)":                      "the argument of endsWith must be text, not a number",
		"limit.name.contains(limit.id)":        "the argument of contains must be text, not null",
		"has(descriptors[0])":                  "has is for a field of a descriptor, such as has(descriptors[0].key)",
		"has('a')":                             "has is for a field of a descriptor, such as has(descriptors[0].key)",
		"limit.max == ''":                      "of its limit a condition can look at limit.name and limit.id, and a variable at nothing",
		"'name' in limit":                      "of its limit a condition can look at limit.name and limit.id, and a variable at nothing",
		strings.Repeat("(", 40):                "an expression has at most 32 parts inside of each other",
		strings.Repeat("!", 40) + "true":       "an expression has at most 32 parts inside of each other",
		"true" + strings.Repeat("&&true", 200): "an expression has at most 256 parts",
		strings.Repeat(" ", 5000):              "an expression has at most 4096 bytes",
	} {
		e, err := cel.Condition(source, cel.Limit{Name: &name})
		require.EqualError(t, err, want, source)
		require.Nil(t, e)
	}
	for source, want := range map[string]string{
		"limit.name": "of its limit a condition can look at limit.name and limit.id, and a variable at nothing", "descriptors[0]": "a variable must not be a descriptor", "[1]": "a variable must not be a list", "user_id": "the name user_id is not known: there are descriptors and, in conditions, limit",
	} {
		e, err := cel.Variable(source)
		require.EqualError(t, err, want, source)
		require.Nil(t, e)
	}
}

// TestJoinedTextsAreBounded: an expression cannot make a text of more than 1 MiB.
func TestJoinedTextsAreBounded(t *testing.T) {
	s := &cel.Scope{Descriptors: []rls.Descriptor{{Entries: []rls.Entry{{Key: []byte("a"), Value: make([]byte, 60_000)}}}}}
	e, err := cel.Variable("descriptors[0].a" + strings.Repeat(" + descriptors[0].a", 30))
	require.NoError(t, err)
	_, exists := e.AppendValue(nil, s)
	require.False(t, exists)
}

// TestEvaluationAllocatesNothing: neither a condition nor a variable does.
func TestEvaluationAllocatesNothing(t *testing.T) {
	s := scope()
	c, err := cel.Condition("descriptors[0].a in ['x', 'y'] && descriptors[0].a + 'b' == 'yb' && has(descriptors[1].y) && size(descriptors[0]) == 3 && limit.name == 'n1'", cel.Limit{Name: &name})
	require.NoError(t, err)
	v, err := cel.Variable("descriptors[0].a + descriptors[1].y")
	require.NoError(t, err)
	dst := make([]byte, 0, 100)
	require.True(t, c.Holds(s))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = c.Holds(s)
		dst, _ = v.AppendValue(dst[:0], s)
	}))
}

// FuzzCondition: no text causes a panic, neither when it is parsed nor when it is evaluated.
func FuzzCondition(f *testing.F) {
	for _, source := range []string{
		"descriptors[0].a == 'y'", "'a' in descriptors[0] && !has(descriptors[1].b)", `descriptors[0]["b.c"].startsWith("\x41") || size(descriptors) + 1 >= 2`,
		"limit.name in ['a', null] == true", "[[1], 'a'].size() < 9223372036854775807 + 1", "((((", "!", "limit[", "descriptors[descriptors[0].a.size()].y != ''",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if e, err := cel.Condition(source, cel.Limit{Name: &name}); err == nil {
			_ = e.Holds(scope())
			_ = e.Holds(new(cel.Scope))
			require.Equal(t, source, e.String())
		}
		if e, err := cel.Variable(source); err == nil {
			_, _ = e.AppendValue(nil, scope())
			_, _ = e.AppendValue(nil, new(cel.Scope))
		}
	})
}
