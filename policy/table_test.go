package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

// precedence are the patterns of TestPrecedence for the key acme:7, in order of precedence.
var precedence = [4]string{"acme:7", "acme:*", "ac*", "*"}

// put sets one entry of a kind for each of the patterns: none if the state is 0, one that has
// expired at now if it is 1, and one in force if it is 2. It returns the pattern that applies, or
// "".
func put(t *testing.T, b *policy.Builder, kind policy.Kind, states [4]int, now limit.Instant) (want string) {
	for i, state := range states {
		if state == 0 {
			continue
		}
		e := entryOf(t, kind, precedence[i])
		if e.Until = now; state == 2 {
			e.Until++
			if want == "" {
				want = precedence[i]
			}
		}
		require.NoError(t, b.Set(e))
	}
	return want
}

// TestPrecedence tests all combinations of an exact pattern, a longer and a shorter prefix and a
// star, in force or not, for each kind together with each other kind. The first pattern in force
// applies, whatever entries of the other kind exist.
func TestPrecedence(t *testing.T) {
	const now = limit.Instant(1000)
	for _, kind := range allKinds[policy.Override:] {
		for _, other := range allKinds[policy.Override:] {
			if kind == other {
				continue
			}
			for n := range 81 {
				states := [4]int{n % 3, n / 3 % 3, n / 9 % 3, n / 27}
				for _, others := range [][4]int{{}, {2, 0, 0, 0}, {0, 2, 1, 0}, {1, 1, 0, 2}} {
					b := policy.NewBuilder(policy.Sizes{})
					require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
					want, wantOther := put(t, b, kind, states, now), put(t, b, other, others, now)
					var a policy.Applied
					b.Table().Policy([]byte("api")).Find([]byte("acme:7"), now, &a)
					got := appliedOf(&a)
					require.Equal(t, want, got[kind], "%v %v", kind, states)
					require.Equal(t, wantOther, got[other], "%v %v beside %v %v", other, others, kind, states)
				}
			}
		}
	}
}

// appliedOf returns the patterns of the entries that apply, by kind.
func appliedOf(a *policy.Applied) map[policy.Kind]string {
	got := map[policy.Kind]string{}
	for kind, e := range map[policy.Kind]*policy.Entry{
		policy.Override: a.Override, policy.Boost: a.Boost, policy.Block: a.Block, policy.Exempt: a.Exempt,
	} {
		if e != nil {
			got[kind] = e.Pattern
		}
	}
	return got
}

// TestFindKeys: which keys match a pattern.
func TestFindKeys(t *testing.T) {
	for _, row := range []struct {
		pattern  string
		yes, not []string
	}{
		{"acme", []string{"acme"}, []string{"", "acm", "acme2", "Acme", "acme*"}},
		{"acme*", []string{"acme", "acme2", "acme*", "acme:\x00"}, []string{"", "acm", "Acme"}},
		{"*", []string{"", "*", "a", "\xff"}, nil},
		{"**", []string{"*", "**", "*a"}, []string{"", "a"}},
		{"a*b", []string{"a*b"}, []string{"a", "ab", "axb", "a*bc"}},
		{"a*b*", []string{"a*b", "a*bc"}, []string{"ab", "axb"}},
	} {
		b := policy.NewBuilder(policy.Sizes{})
		require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
		require.NoError(t, b.Set(entryOf(t, policy.Block, row.pattern)))
		p := b.Table().Policy([]byte("api"))
		find := func(key string) bool {
			var a policy.Applied
			p.Find([]byte(key), 0, &a)
			return a.Block != nil
		}
		for _, key := range row.yes {
			require.True(t, find(key), "%s %q", row.pattern, key)
		}
		for _, key := range row.not {
			require.False(t, find(key), "%s %q", row.pattern, key)
		}
	}
}

// TestPrefixesOfAllBytes: a node of the tree may have 256 children.
func TestPrefixesOfAllBytes(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	pattern := func(c int) string { return string([]byte{'a', byte(c), '*'}) }
	check := func(from int) {
		p := b.Table().Policy([]byte("api"))
		for c := range 256 {
			var a policy.Applied
			p.Find([]byte{'a', byte(c), 'x'}, 0, &a)
			require.Equal(t, c >= from, a.Exempt != nil)
			require.True(t, a.Exempt == nil || a.Exempt.Pattern == pattern(c))
		}
	}
	for c := 255; c >= 0; c-- {
		require.NoError(t, b.Set(entryOf(t, policy.Exempt, pattern(c))))
		check(c)
	}
	for c := range 256 {
		require.True(t, b.Delete(policy.Exempt, "api", pattern(c)))
		check(c + 1)
	}
}

// TestFindReplaces: Find keeps nothing of its previous result.
func TestFindReplaces(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	for _, kind := range allKinds[policy.Override:] {
		require.NoError(t, b.Set(entryOf(t, kind, "a")))
	}
	override := entryOf(t, policy.Override, "a")
	override.Limits = limitsOf(t, "CL 1 1 1")
	require.NoError(t, b.Set(override))
	p := b.Table().Policy([]byte("api"))
	var a policy.Applied
	p.Find([]byte("a"), 0, &a)
	require.Len(t, appliedOf(&a), 4)
	require.Same(t, override.Limits, p.InForce(&a))
	p.Find([]byte("b"), 0, &a)
	require.Empty(t, appliedOf(&a))
	require.Same(t, p.Main.Limits, p.InForce(&a))
}

// TestInert: entries for a policy that does not exist have no effect until it exists.
func TestInert(t *testing.T) {
	var none policy.Table
	require.Nil(t, none.Policy([]byte("api")))
	none.Each("", func(*policy.Entry) bool { panic("there is no entry") })
	none.Each("api", func(*policy.Entry) bool { panic("there is no entry") })

	b := policy.NewBuilder(policy.Sizes{})
	require.NoError(t, b.Set(entryOf(t, policy.Block, "*")))
	require.NoError(t, b.Set(entryOf(t, policy.Candidate, "")))
	require.Nil(t, b.Table().Policy([]byte("api")))
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	require.NotNil(t, b.Table().Policy([]byte("api")).Candidate)
	require.Nil(t, b.Table().Policy([]byte("ap")))
	require.True(t, b.Delete(policy.Main, "api", ""))
	require.Nil(t, b.Table().Policy([]byte("api")))
	require.NotNil(t, b.Get(policy.Block, "api", "*"))
}

// TestCountsRemain: counters continue while a policy changes, and begin at 0 for a new policy.
func TestCountsRemain(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	b.Table().Policy([]byte("api")).Counts.Blocked.Add(5)
	require.NoError(t, b.Set(entryOf(t, policy.Block, "a")))
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	require.Equal(t, int64(5), b.Table().Policy([]byte("api")).Counts.Blocked.Load())
	require.True(t, b.Delete(policy.Main, "api", ""))
	require.True(t, b.Delete(policy.Block, "api", "a"))
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	require.Zero(t, b.Table().Policy([]byte("api")).Counts.Blocked.Load())
}

func TestFindAllocatesNothing(t *testing.T) {
	table := filled(t, 1, 1000, 1000).Table()
	name, keys := []byte("policy-0"), [][]byte{[]byte("customer:5"), []byte("tenant:5:user"), []byte("user"), nil}
	var a policy.Applied
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, key := range keys {
			table.Policy(name).Find(key, 1, &a)
		}
	}))
}

// TestEach: Each visits all entries, of one policy or of all, and stops when f returns false.
func TestEach(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	want := map[string][]string{}
	for _, name := range []string{"a", "b"} {
		for _, kind := range allKinds {
			for i := range 10 {
				e := entryOf(t, kind, "")
				if e.Policy = name; kind.HasPattern() {
					e.Pattern = fmt.Sprint("acme", i, []string{"", "*"}[i%2])
				} else if i > 0 {
					continue
				}
				require.NoError(t, b.Set(e))
				want[name] = append(want[name], string(e.AppendKey(nil)))
			}
		}
	}
	table := b.Table()
	for name, keys := range map[string][]string{"a": want["a"], "b": want["b"], "": slices.Concat(want["a"], want["b"]), "c": nil} {
		for _, each := range []func(string, func(*policy.Entry) bool){b.Each, table.Each} {
			var got []string
			each(name, func(e *policy.Entry) bool {
				got = append(got, string(e.AppendKey(nil)))
				return true
			})
			require.ElementsMatch(t, keys, got)
			for most := 1; most <= len(keys); most++ {
				seen := 0
				each(name, func(*policy.Entry) bool { seen++; return seen < most })
				require.Equal(t, most, seen)
			}
		}
	}
	require.Equal(t, policy.Sizes{Policies: 2, Overrides: 20, Others: 60}, table.Sizes())
}
