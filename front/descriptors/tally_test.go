package descriptors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// loaded returns the rules of a domain d with limits for the keys.
func loaded(t testing.TB, keys ...string) *rls.Config {
	t.Helper()
	var text strings.Builder
	text.WriteString("domain: d\ndescriptors:\n")
	for _, key := range keys {
		fmt.Fprintf(&text, "- {key: %s, rate_limit: {unit: minute, requests_per_unit: 9}}\n", key)
	}
	c, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte(text.String())}}, false)
	require.NoError(t, faults.Err())
	return c
}

// totals returns the hits of each series of the rules of s, by Key1.
func totals(s *Service) map[string]int64 {
	all := map[string]int64{}
	s.Tally.Each(s.Rules, func(name rls.Series, h rls.Hits) { all[name.Key1] += h.Total })
	return all
}

// TestTallyKeepsSeries: a series keeps its counts when the rules are replaced, until no rule has it.
func TestTallyKeepsSeries(t *testing.T) {
	rules := loaded(t, "k", "gone")
	s := &Service{Rules: func() *rls.Config { return rules }, Tally: NewTally()}
	require.Equal(t, map[string]int64{"k": 0, "gone": 0}, totals(s))
	c := new(Call)
	about(c, "d", "a", "b")
	add := func() {
		c.decisions = []rls.Decision{{Limit: 9, Remaining: 8}, {Denied: true, Over: true, Limit: 9}}
		s.Tally.add(s, c, rls.Options{Near: 80})
	}
	require.NoError(t, rules.Plan(&c.Request, &c.plan))
	add()
	rules = loaded(t, "new", "k")
	require.Equal(t, map[string]int64{"k": 2, "new": 0}, totals(s))
	add() // by the rules before
	require.Equal(t, map[string]int64{"k": 4, "new": 0}, totals(s))
	s.Tally.Each(s.Rules, func(name rls.Series, h rls.Hits) {
		if name.Key1 == "k" {
			require.Equal(t, rls.Hits{Total: 4, Over: 2, Within: 2}, h)
		}
	})
	rules = loaded(t, "new")
	add()
	require.Equal(t, map[string]int64{"new": 0}, totals(s), "the rule is gone")
	rules = loaded(t, "k")
	require.Equal(t, map[string]int64{"k": 0}, totals(s))
	rules = nil
	require.Empty(t, totals(s))
}

// TestTallyIsBounded: rules beyond MaxSeries share a series, also one whose series has its name. A rule keeps its series.
func TestTallyIsBounded(t *testing.T) {
	keys := []string{}
	for i := range MaxSeries + 5 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	rules := loaded(t, keys...)
	s := &Service{Rules: func() *rls.Config { return rules }, Tally: NewTally()}
	all := totals(s)
	require.Len(t, all, MaxSeries+1)
	require.Contains(t, all, "other")
	require.NotContains(t, all, keys[MaxSeries])
	rules = loaded(t, append([]string{"first"}, keys[1:]...)...)
	all = totals(s)
	require.Len(t, all, MaxSeries+1)
	require.Contains(t, all, keys[MaxSeries-1])
	require.Contains(t, all, "first", "the place of the rule that is gone")

	c, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte("domain: other\ndescriptors: [{key: other, rate_limit: {unit: day}}, {key: k, rate_limit: {unit: day}}]")}}, false)
	require.NoError(t, faults.Err())
	rules = c
	require.Equal(t, map[string]int64{"other": 0, "k": 0}, totals(s))
}

func TestTallyAllocatesNothing(t *testing.T) {
	s, by, c := open(t, rls.Options{Near: 80}, "d"), &replies{text: reply(0, 9, 8, 7000)}, new(Call)
	s.Tally = NewTally()
	about(c, "d", "a")
	answer := func() { _ = s.Answer(c, by) }
	answer()
	require.Zero(t, testing.AllocsPerRun(100, answer))
	require.EqualValues(t, 102, totals(s)["k"])
}

func BenchmarkTally(b *testing.B) {
	s, c := open(b, rls.Options{}, "d"), new(Call)
	s.Tally = NewTally()
	about(c, "d", "a")
	if err := s.Rules().Plan(&c.Request, &c.plan); err != nil {
		b.Fatal(err)
	}
	c.decisions = []rls.Decision{{Limit: 9, Remaining: 8}}
	b.ReportAllocs()
	for b.Loop() {
		s.Tally.add(s, c, rls.Options{Near: 80})
	}
}
