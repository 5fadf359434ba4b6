package policies_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// The combinations of entries of one kind that may exist for a key.
var ways = []struct {
	exact, prefix, exactOver, prefixOver bool // Over: the entry exists and has ended
}{
	{},
	{exact: true},
	{prefix: true},
	{exact: true, prefix: true},
	{exactOver: true, prefixOver: true},
	{exactOver: true, prefix: true},
}

// TestPrecedence tests all combinations of exemptions, blocks, overrides and boosts: each exact,
// as a prefix, both or neither, in force or ended.
func TestPrecedence(t *testing.T) {
	effort.Alone(t)
	n := newNode(t)
	set := func(policy, kind, pattern string, exact bool, ex int) {
		other := func(a, b string) string {
			if exact {
				return a
			}
			return b
		}
		ttl := fmt.Sprint(ex)
		switch kind {
		case "exempt", "block":
			require.Equal(t, ok, n.do("RL."+kind, policy, pattern, "EX", ttl))
		case "override":
			require.Equal(t, ok, n.do("RL.OVERRIDE", "SET", policy, pattern, "EX", ttl, "LIMITS", "SW", other("20", "30"), "60", "FIXED"))
		case "boost":
			require.Equal(t, ok, n.do("RL.BOOST", policy, pattern, other("2", "3.5"), "EX", ttl))
		}
	}
	kinds := []string{"exempt", "block", "override", "boost"}
	each := func(f func(policy string, way [4]int)) {
		for i := range len(ways) * len(ways) * len(ways) * len(ways) {
			f(fmt.Sprintf("p%d", i), [4]int{i % 6, i / 6 % 6, i / 36 % 6, i / 216})
		}
	}
	const exact, longest = "acme:1", "acme:*"
	each(func(policy string, way [4]int) {
		require.Equal(t, ok, n.do("RL.POLICY", "SET", policy, "LIMITS", "SW", "10", "60", "FIXED"))
		for k, kind := range kinds {
			if ways[way[k]].exactOver {
				set(policy, kind, exact, true, 1)
			}
			if ways[way[k]].prefixOver {
				set(policy, kind, longest, false, 1)
			}
		}
	})
	n.Server().Clock.Advance(time.Second)
	each(func(policy string, way [4]int) {
		for k, kind := range kinds {
			if ways[way[k]].exact {
				set(policy, kind, exact, true, 100)
			}
			if ways[way[k]].prefix {
				set(policy, kind, longest, false, 50)
				set(policy, kind, "acme*", false, 200) // there is a longer pattern than this one
				set(policy, kind, "other", true, 200)
				set(policy, kind, "acme:12*", false, 200)
			}
		}
	})
	each(func(policy string, way [4]int) {
		here := func(k int) string { // the pattern in force, "" for none
			switch w := ways[way[k]]; {
			case w.exact:
				return exact
			case w.prefix:
				return longest
			}
			return ""
		}
		limit := map[string]int64{"": 10, exact: 20, longest: 30}[here(2)]
		limit = limit * map[string]int64{"": 1000, exact: 2000, longest: 3500}[here(3)] / 1000
		left := map[string]int64{exact: 100, longest: 50}[here(1)]
		want, applies, pattern := inproc.Five(1, limit, limit, -1, 0), "default", ""
		switch {
		case here(0) != "":
			want, applies, pattern = inproc.Five(0, limit, limit, -1, 0), "exemption", here(0)
		case here(1) != "":
			want, applies, pattern = inproc.Five(1, limit, 0, left, left), "block", here(1)
		case here(2) != "":
			applies, pattern = "override", here(2)
		}
		require.Equal(t, want, n.do("RL.USE", policy, exact, "1000"), "%s %v", policy, way)
		details := want
		if applies == "exemption" {
			details = inproc.Five(1, limit, limit, -1, 0)
		}
		require.Equal(t, "*2\r\n"+want+"*1\r\n"+details, n.do("RL.USE", policy, exact, "1000", "WITHDETAILS"))
		words := n.do("RL.EXPLAIN", policy, exact, "1000")
		require.Contains(t, words, inproc.Bulk("applies")+inproc.Bulk(applies), "%s %v", policy, way)
		if pattern == "" {
			require.Contains(t, words, inproc.Bulk("pattern")+"$-1\r\n")
		} else {
			require.Contains(t, words, inproc.Bulk("pattern")+inproc.Bulk(pattern))
		}
		require.Contains(t, words, inproc.Bulk("answer")+want)
		require.Equal(t, here(3) == "", strings.Contains(words, inproc.Bulk("boost")+"$-1\r\n"))
		n.do("DEL", policy+":"+exact)
	})
}
