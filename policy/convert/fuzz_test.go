package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/policy/convert"
	"github.com/cellserver/cellserver/policy/document"
)

// FuzzFromEnvoy: no text causes a panic, and the result is a valid document.
func FuzzFromEnvoy(f *testing.F) {
	for _, text := range []string{
		"domain: a\ndescriptors:\n- {key: k, value: 'v*', rate_limit: {unit: day, requests_per_unit: 1, name: n, replaces: [{name: m}]}, shadow_mode: true}\n",
		"domain: a\ndescriptors:\n- {key: k, descriptors: [{key: l, value: '*x*', share_threshold: true, rate_limit: {unlimited: true}}, {key: l, value: axb}]}\n",
		"domain: \"\\0\"\ndescriptors: [{key: ': ', rate_limit: {unit: year, requests_per_unit: 0}, metadata: {a: [b]}}]",
		"domain: [", "domain: &a b\ndescriptors: *a", "[{]", "domain: 1\ndescriptors: ~",
	} {
		f.Add([]byte(text))
	}
	fuzz(f, convert.FromEnvoy)
}

// FuzzFromLimitador is like FuzzFromEnvoy.
func FuzzFromLimitador(f *testing.F) {
	for _, text := range []string{
		"- {namespace: a, max_value: 1, seconds: 60, conditions: [\"x == '5'\"], variables: [y]}\n- {namespace: a, seconds: 1, conditions: , variables: }\n",
		"- namespace: \"\\n\"\n  max_value: 9223372036854775807\n  seconds: 9223372036854775807\n  conditions:\n  variables: [\"descriptors[0]['a']\"]\n  name: \"\\t#\"\n",
		"kind: ConfigMap", "[]", "- - a",
	} {
		f.Add([]byte(text))
	}
	fuzz(f, convert.FromLimitador)
}

func fuzz(f *testing.F, from converter) {
	f.Fuzz(func(t *testing.T, text []byte) {
		r, faults := from([]convert.File{{Name: "a", Text: text}})
		if r == nil {
			require.NotEmpty(t, faults)
			return
		}
		require.Empty(t, faults)
		check(t, r)
	})
}

// TestLongFilesTakeNoLongTime: a file with as many descriptors as possible, in forms that need the
// most comparisons, is converted in a short time.
func TestLongFilesTakeNoLongTime(t *testing.T) {
	for name, entry := range map[string]func(i int) string{
		"values": func(i int) string {
			return fmt.Sprintf("- {key: k, value: v%d, rate_limit: {unit: day, requests_per_unit: 1}}\n", i)
		},
		"prefixes": func(i int) string {
			return fmt.Sprintf("- {key: k, value: '%s*', rate_limit: {unit: day, requests_per_unit: 1}}\n", strings.Repeat("v", i))
		},
		"patterns": func(i int) string {
			return fmt.Sprintf("- {key: k, value: '*%d', rate_limit: {unit: day, requests_per_unit: 1}}\n", i)
		},
		"keys": func(i int) string {
			return fmt.Sprintf("- {key: k%d, rate_limit: {unit: day, requests_per_unit: 1}}\n", i)
		},
		"one depth": func(i int) string {
			return fmt.Sprintf("- {key: k, value: '*v%d', descriptors: [{key: l, rate_limit: {unit: day, requests_per_unit: 1}}]}\n", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			text.WriteString("domain: a\ndescriptors:\n")
			for i := 0; ; i++ {
				next := entry(i)
				if text.Len()+len(next) > document.MaxText {
					break
				}
				text.WriteString(next)
			}
			begun := effort.CPU()
			r, faults := convert.FromEnvoy([]convert.File{{Name: "a", Text: []byte(text.String())}})
			took := effort.CPU() - begun
			require.Less(t, took, 20*time.Second)
			t.Log(took, faults)
			if r != nil {
				check(t, r)
			}
		})
	}
}
