package policy_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

// TestSizes: the number of entries of each kind is bounded, but an entry can still be replaced.
func TestSizes(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{Policies: 2, Overrides: 3, Others: 4})
	set := func(kind policy.Kind, name, pattern string) error {
		e := entryOf(t, kind, pattern)
		e.Policy = name
		return b.Set(e)
	}
	require.NoError(t, set(policy.Main, "a", ""))
	require.NoError(t, set(policy.Candidate, "b", ""))
	require.ErrorIs(t, set(policy.Main, "c", ""), policy.ErrTooManyPolicies)
	require.ErrorIs(t, set(policy.Block, "c", "x"), policy.ErrTooManyPolicies)
	require.NoError(t, set(policy.Main, "a", ""))
	require.NoError(t, set(policy.Main, "b", ""))
	for _, pattern := range []string{"1", "2*", "3"} {
		require.NoError(t, set(policy.Override, "a", pattern))
	}
	require.ErrorIs(t, set(policy.Override, "b", "1"), policy.ErrTooManyOverrides)
	require.NoError(t, set(policy.Override, "a", "2*"))
	for kind, pattern := range map[policy.Kind]string{policy.Boost: "1", policy.Block: "1*", policy.Exempt: "1"} {
		require.NoError(t, set(kind, "a", pattern))
	}
	require.NoError(t, set(policy.Exempt, "b", "1"))
	before := b.Bytes()
	require.ErrorIs(t, set(policy.Boost, "b", "1"), policy.ErrTooManyOthers)
	require.ErrorIs(t, set(policy.Block, "a", "2"), policy.ErrTooManyOthers)
	require.ErrorIs(t, set(policy.Block, "a", ""), policy.ErrPattern)
	require.Equal(t, policy.Sizes{Policies: 2, Overrides: 3, Others: 4}, b.Sizes())
	require.Equal(t, before, b.Bytes())

	require.True(t, b.Delete(policy.Override, "a", "2*"))
	require.NoError(t, set(policy.Override, "b", "1"))
	require.True(t, b.Delete(policy.Block, "a", "1*"))
	require.NoError(t, set(policy.Block, "a", "2"))
}

func TestDelete(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	require.False(t, b.Delete(policy.Main, "api", ""))
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	require.NoError(t, b.Set(entryOf(t, policy.Override, "acme*")))
	for _, at := range []id{
		{policy.Main, "api", "x"},
		{policy.Main, "ap", ""},
		{policy.Candidate, "api", ""},
		{policy.Override, "api", "acme"},
		{policy.Override, "api", "ac*"},
		{policy.Override, "api", "acme:*"},
		{policy.Override, "api", ""},
		{policy.Block, "api", "acme*"},
		{6, "api", "acme*"},
	} {
		require.Nil(t, b.Get(at.kind, at.policy, at.pattern))
		require.False(t, b.Delete(at.kind, at.policy, at.pattern), at)
	}
	require.True(t, b.Delete(policy.Override, "api", "acme*"))
	require.False(t, b.Delete(policy.Override, "api", "acme*"))
	require.True(t, b.Delete(policy.Main, "api", ""))
	require.Zero(t, b.Sizes())
	require.Zero(t, b.Bytes())
}

// TestExpiry: an entry is in force up to the nanosecond before its end, whether it has been dropped
// or not. After that the entry with the shorter prefix is.
func TestExpiry(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	for pattern, until := range map[string]limit.Instant{"*": limit.MaxInstant, "ac*": 30, "acme*": 20, "acme": 10, "z": 10} {
		e := entryOf(t, policy.Block, pattern)
		e.Until = until
		require.NoError(t, b.Set(e))
	}
	find := func(now limit.Instant) string {
		var a policy.Applied
		b.Table().Policy([]byte("api")).Find([]byte("acme"), now, &a)
		return a.Block.Pattern
	}
	var want []string
	for now, pattern := range []string{9: "acme", 10: "acme*", 19: "acme*", 20: "ac*", 29: "ac*", 30: "*", 31: "*"} {
		if pattern != "" {
			require.Equal(t, pattern, find(limit.Instant(now)))
			want = append(want, pattern)
		}
	}
	require.Equal(t, limit.Instant(10), b.NextExpiry())
	require.Empty(t, b.DropExpired(9))
	require.Len(t, b.DropExpired(20), 3)
	require.Equal(t, limit.Instant(30), b.NextExpiry())
	require.Equal(t, "ac*", find(0), "what has been dropped does not come back if time does")
	require.Len(t, b.DropExpired(limit.MaxInstant), 1)
	require.Equal(t, limit.MaxInstant, b.NextExpiry())
	require.Empty(t, b.DropExpired(limit.MaxInstant), "what stays is never dropped")
	require.Equal(t, "*", find(limit.MaxInstant-1))
	require.Len(t, want, 7)
}

// TestExpiryMoves: an entry that is set again expires at the new time.
func TestExpiryMoves(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	set := func(until limit.Instant) {
		e := entryOf(t, policy.Boost, "a")
		e.Until = until
		require.NoError(t, b.Set(e))
	}
	for _, until := range []limit.Instant{10, 5, 20, limit.MaxInstant, 15} {
		set(until)
		require.Equal(t, until, b.NextExpiry())
	}
	require.Empty(t, b.DropExpired(14))
	require.Len(t, b.DropExpired(15), 1)
	require.Zero(t, b.Sizes())
}

// TestSharedLimits: entries with the same text share their limits, unless these were parsed under
// other bounds.
func TestSharedLimits(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	limits := func(text string, millis bool, most int64) *policy.Limits {
		l, err := policy.ParseLimits(words(text), millis, policy.Bounds{LogMaxEntries: most})
		require.Empty(t, err)
		return l
	}
	set := func(pattern string, l *policy.Limits) *policy.Limits {
		e := entryOf(t, policy.Override, pattern)
		e.Limits = l
		require.NoError(t, b.Set(e))
		return b.Get(policy.Override, "api", pattern).Limits
	}
	first := set("1", limits("SW 5 60 LOG", false, 100))
	require.Same(t, first, set("2", limits("sw 5 60 log", false, 100)))
	require.NotSame(t, first, set("3", limits("SW 5 60 LOG", true, 100)))
	require.NotSame(t, first, set("4", limits("SW 5 60 LOG", false, 200)))
	require.NotSame(t, first, set("5", limits("SW 5 60", false, 100)))
	require.Same(t, first, set("1", limits("SW 5 60 LOG", false, 100)), "also in the place of one that had them")
	for i := 1; i <= 5; i++ {
		require.True(t, b.Delete(policy.Override, "api", fmt.Sprint(i)))
	}
	require.Zero(t, b.Bytes())
	require.NotSame(t, first, set("1", limits("SW 5 60 LOG", false, 100)))
}

// TestBytes: the estimate is close to the growth of the heap.
func TestBytes(t *testing.T) {
	limits := limitsOf(t, "TB 200 100 1")
	for name, entry := range map[string]func(i int) *policy.Entry{
		"exact":  func(i int) *policy.Entry { return entryOf(t, policy.Block, fmt.Sprintf("customer:%05d", i)) },
		"prefix": func(i int) *policy.Entry { return entryOf(t, policy.Exempt, fmt.Sprintf("customer:%05d*", i)) },
		"policy": func(i int) *policy.Entry {
			return &policy.Entry{Policy: fmt.Sprintf("p%05d", i), Limits: limits, Until: limit.MaxInstant}
		},
		"limits": func(i int) *policy.Entry {
			e := entryOf(t, policy.Override, fmt.Sprintf("customer:%05d", i))
			e.Limits = limitsOf(t, fmt.Sprintf("TB %d 100 1", i+1))
			return e
		},
	} {
		b := policy.NewBuilder(policy.Sizes{})
		before := heapBytes()
		for i := range 10_000 {
			require.NoError(t, b.Set(entry(i)))
		}
		grown := heapBytes() - before
		require.InEpsilon(t, grown, b.Bytes(), 0.3, name)
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSetCopies: a change of an entry by the caller after Set has no effect.
func TestSetCopies(t *testing.T) {
	b := policy.NewBuilder(policy.Sizes{})
	e := entryOf(t, policy.Boost, "a")
	require.NoError(t, b.Set(e))
	*e = policy.Entry{}
	require.Equal(t, entryOf(t, policy.Boost, "a"), b.Get(policy.Boost, "api", "a"))
	require.NoError(t, b.Set(b.Get(policy.Boost, "api", "a")), "an entry of the builder in its own place")
	require.Equal(t, entryOf(t, policy.Boost, "a"), b.Get(policy.Boost, "api", "a"))
}
