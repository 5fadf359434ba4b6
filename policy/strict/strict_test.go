package strict_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy/strict"
)

const most = 1000

// TestScalars: how each method interprets a scalar, and the faults for others.
func TestScalars(t *testing.T) {
	for text, want := range map[string]string{
		"a":                       `text "a"; scalar "a"; not a bool; not a loose bool; not a number`,
		"'5'":                     `text "5"; scalar "5"; not a bool; not a loose bool; not a number`,
		"5":                       `not text; scalar "5"; not a bool; not a loose bool; number 5`,
		"0x10":                    `not text; scalar "0x10"; not a bool; not a loose bool; number 16`,
		"-1":                      `not text; scalar "-1"; not a bool; not a loose bool; not a number`,
		"101":                     `not text; scalar "101"; not a bool; not a loose bool; not a number`,
		"99999999999999999999999": `not text; scalar "99999999999999999999999"; not a bool; not a loose bool; not a number`,
		"1.0":                     `not text; scalar "1.0"; not a bool; not a loose bool; not a number`,
		"true":                    `not text; scalar "true"; bool true; loose bool true; not a number`,
		"FALSE":                   `not text; scalar "FALSE"; bool false; loose bool false; not a number`,
		"yes":                     `text "yes"; scalar "yes"; not a bool; loose bool true; not a number`,
		"off":                     `text "off"; scalar "off"; not a bool; loose bool false; not a number`,
		"~":                       `not text; scalar ""; not a bool; not a loose bool; not a number`,
		"2026-12-01":              `not text; scalar "2026-12-01"; not a bool; not a loose bool; not a number`,
		"!!binary /w==":           `text "\xff"; scalar "\xff"; not a bool; not a loose bool; not a number`,
		"!!binary /w=":            `not text; not scalar; not a bool; not a loose bool; not a number`,
		"[]":                      `not text; not scalar; not a bool; not a loose bool; not a number`,
		"{}":                      `not text; not scalar; not a bool; not a loose bool; not a number`,
	} {
		v, r := strict.Read("f", []byte(text), most)
		require.Empty(t, r.Faults(), text)
		var got []string
		say := func(ok bool, yes, no string) {
			if !ok {
				yes = no
			}
			got = append(got, yes)
		}
		s, ok := v.String("x")
		say(ok, "text "+strict.Clipped(s), "not text")
		s, ok = v.Scalar("x")
		say(ok, "scalar "+strict.Clipped(s), "not scalar")
		b, ok := v.Bool("x")
		say(ok, "bool "+map[bool]string{true: "true", false: "false"}[b], "not a bool")
		b, ok = v.LooseBool("x")
		say(ok, "loose bool "+map[bool]string{true: "true", false: "false"}[b], "not a loose bool")
		n, ok := v.Number("x", 0, 100)
		say(ok, "number "+map[int64]string{5: "5", 16: "16"}[n], "not a number")
		require.Equal(t, want, strings.Join(got, "; "), text)
		require.Len(t, r.Faults(), strings.Count(want, "not "), text)
	}
}

// TestFieldsAndItems: a mapping and a list in order, and each fault of keys.
func TestFieldsAndItems(t *testing.T) {
	v, r := strict.Read("f", []byte("b: 1\n4711: [x, y]\ntrue: \nb: 2\n~: 3\n[c]: 4\n? !!binary YQ==\n: 5\na: 6\n"), most)
	require.Empty(t, r.Faults())
	var keys, items []string
	for key, value := range v.Fields("it") {
		keys = append(keys, key.Text)
		require.Equal(t, key.Text == "true", value.IsNull())
		if value.IsList() {
			for item := range value.Items("it") {
				text, _ := item.String("x")
				items = append(items, text)
			}
		}
	}
	require.Equal(t, []string{"b", "4711", "true", "a"}, keys)
	require.Equal(t, []string{"x", "y"}, items)
	require.EqualError(t, r.Faults(), `f:4: "b" is there twice: its first is in line 1
f:5: a key must not be null: write quotes around it
f:6: a key must be text, not a list
f:9: "a" is there twice: its first is in line 7`)
}

// TestFaultsAreBounded: there are at most a hundred faults, and the last one says that there are
// more.
func TestFaultsAreBounded(t *testing.T) {
	v, r := strict.Read("f", []byte("a"), most)
	require.NoError(t, r.Faults().Err())
	for range 2 * strict.MaxFaults {
		v.Fault("fault %d", 1)
	}
	require.Len(t, r.Faults(), strict.MaxFaults)
	require.EqualError(t, r.Faults()[98], "f:1: fault 1")
	require.EqualError(t, r.Faults()[99], "f:1: there are more faults, which are not shown")
	require.Equal(t, `"`+strings.Repeat("x", 64)+`..."`, strict.Clipped(strings.Repeat("x", 65)))
}
