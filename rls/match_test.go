package rls_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// model is a descriptor of a file, for a plain implementation of matching.
type model struct {
	key, value string
	limited    bool
	path       string
	below      []*model
}

func (m *model) text() string {
	if m.value == "" {
		return m.key
	}
	return m.key + "_" + m.value
}

// yaml appends the descriptors of list to b.
func yaml(b *strings.Builder, list []*model, indent string) {
	for _, m := range list {
		fmt.Fprintf(b, "%s- key: %q\n%s  value: %q\n", indent, m.key, indent, m.value)
		if m.limited {
			fmt.Fprintf(b, "%s  rate_limit: {unit: day, requests_per_unit: 1}\n", indent)
		}
		if len(m.below) > 0 {
			fmt.Fprintf(b, "%s  descriptors:\n", indent)
			yaml(b, m.below, indent+"  ")
		}
	}
}

// find returns the descriptor of list that an entry matches, or nil, by the words of the specification.
func find(list []*model, key, value string) *model {
	by := func(fits func(text string) bool) *model {
		for _, m := range list {
			if fits(m.text()) {
				return m
			}
		}
		return nil
	}
	text := key + "_" + value
	if m := by(func(is string) bool { return is == text }); m != nil {
		return m
	}
	if m := by(func(is string) bool {
		quoted := strings.ReplaceAll(regexp.QuoteMeta(is), `\*`, `.*`)
		return strings.Contains(is, "*") && regexp.MustCompile(`(?s)^`+quoted+`$`).MatchString(text)
	}); m != nil {
		return m
	}
	return by(func(is string) bool { return is == key })
}

var (
	someKeys   = []string{"a", "b", "a_b", "a*", "*_b", "b_a"}
	someValues = []string{"", "a", "b", "a_b", "*", "a*b", "*b*", "b_*"}
)

// drawLevel returns a list of descriptors with different texts.
func drawLevel(t *rapid.T, path string, depth int) (list []*model) {
	seen := map[string]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "descriptors") {
		m := &model{key: rapid.SampledFrom(someKeys).Draw(t, "key"), value: rapid.SampledFrom(someValues).Draw(t, "value"), limited: rapid.Bool().Draw(t, "limited")}
		if seen[m.text()] {
			continue
		}
		seen[m.text()] = true
		m.path = path + "." + m.text()
		if depth > 1 {
			m.below = drawLevel(t, m.path, depth-1)
		}
		list = append(list, m)
	}
	return list
}

// TestMatchingIsThatOfAModel: descriptors match the rules that the model says, and different entries have different
// states unless their texts are the same.
func TestMatchingIsThatOfAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawLevel(t, "d", 3)
		var b strings.Builder
		b.WriteString("domain: d\ndescriptors:\n")
		yaml(&b, list, "")
		c, _, _, faults := rls.Load([]rulefile.File{{Name: "a", Text: []byte(b.String())}}, false)
		if faults != nil {
			t.Fatalf("%v\n%s", faults, b.String())
		}
		paths := map[string]string{}
		for _, r := range c.Rules() {
			paths[r.Policy] = "d." + strings.Join(r.Path, ".")
		}
		states := map[string]string{}
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			var entries []rls.Entry
			var texts []string
			at, want, lost := list, "", false
			for range rapid.IntRange(0, 4).Draw(t, "entries") {
				key, value := rapid.SampledFrom(someKeys).Draw(t, "key"), rapid.SampledFrom(someValues).Draw(t, "value")
				entries = append(entries, rls.Entry{Key: []byte(key), Value: []byte(value)})
				texts = append(texts, key+"_"+value)
				m := find(at, key, value)
				if want = ""; m == nil || lost {
					lost, at = true, nil
					continue
				}
				if at = m.below; m.limited {
					want = m.path
				}
			}
			var p rls.Plan
			if err := c.Plan(&rls.Request{Domain: []byte("d"), Descriptors: []rls.Descriptor{{Entries: entries}}}, &p); err != nil {
				t.Fatal(err)
			}
			got := ""
			for i := range p.Charges {
				got = paths[string(p.Charges[i].Policy)]
				state, text := string(p.Charges[i].Policy)+":"+string(p.Charges[i].Key), strings.Join(texts, "|")
				if other, ok := states[state]; ok && other != text {
					t.Fatalf("%s has the states of %s and of %s\n%s", state, other, text, b.String())
				}
				states[state] = text
			}
			if got != want {
				t.Fatalf("%q: %s, and not %s\n%s", texts, got, want, b.String())
			}
		}
	})
}

// FuzzPlan: no request causes a panic or a charge that no policy can have, and a pattern fits what its regular
// expression does.
func FuzzPlan(f *testing.F) {
	f.Add("a*b", "a", "x_b", "b", "y", uint8(0))
	f.Add("*", "k", "v|#%", "k", "", uint8(3))
	f.Add("k_**v*", "k", strings.Repeat("v", 2000), "", "#2", uint8(7))
	f.Add("\xff", "\xff", "\x00", "\n", "all", uint8(8))
	f.Fuzz(func(t *testing.T, text, key, value, key2, value2 string, unit uint8) {
		var b strings.Builder
		b.WriteString("domain: d\ndescriptors:\n")
		yaml(&b, []*model{{key: "k", below: []*model{{key: "l", value: "*", limited: true}, {key: "m", limited: true}}}, {key: text, limited: true}}, "")
		c, _, _, faults := rls.Load([]rulefile.File{{Name: "a", Text: []byte(b.String())}}, false)
		if faults == nil {
			var p rls.Plan
			entries := []rls.Entry{{Key: []byte(key), Value: []byte(value)}, {Key: []byte(key2), Value: []byte(value2)}}
			err := c.Plan(&rls.Request{Domain: []byte("d"), Descriptors: []rls.Descriptor{
				{Entries: entries}, {Entries: entries[:1]}, {Entries: entries, HasOwn: unit > 0, Own: rls.Own{Unit: int32(unit)}},
			}}, &p)
			require.Equal(t, unit > 7, err != nil)
			for i := range p.Charges {
				require.LessOrEqual(t, len(p.Charges[i].Key), rls.MaxKey)
				require.NotEmpty(t, p.Charges[i].Policy)
				require.NotContains(t, string(p.Charges[i].Key), "#")
			}
		}
		if p := rulefile.NewPattern(text); p != nil {
			quoted := strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `[\x00-\x{10FFFF}]*`)
			if is, err := regexp.Compile(`^` + quoted + `$`); err == nil && strings.ToValidUTF8(text+key, "") == text+key {
				require.Equal(t, is.MatchString(key), p.Fits([]byte(key)), "%q %q", text, key)
			}
		}
	})
}
