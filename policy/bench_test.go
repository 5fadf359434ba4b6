package policy_test

import (
	"fmt"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

// filled returns a builder of 100 policies. The entries are divided among the first spread
// policies. Exact keys are customer:0, customer:1 and so on, prefixes tenant:0:* and so on.
func filled(t require.TestingT, spread, exact, prefixes int) *policy.Builder {
	b := policy.NewBuilder(policy.Sizes{})
	limits := limitsOf(t, "TB 200 100 1")
	for i := range 100 {
		require.NoError(t, b.Set(&policy.Entry{Policy: fmt.Sprint("policy-", i), Limits: limits, Until: limit.MaxInstant}))
	}
	for i := range exact {
		require.NoError(t, b.Set(&policy.Entry{
			Kind: policy.Override, Policy: fmt.Sprint("policy-", i%spread), Pattern: fmt.Sprint("customer:", i), Limits: limits, Until: limit.MaxInstant,
		}))
	}
	for i := range prefixes {
		require.NoError(t, b.Set(&policy.Entry{
			Kind: policy.Override, Policy: fmt.Sprint("policy-", i%spread), Pattern: fmt.Sprintf("tenant:%d:*", i), Limits: limits, Until: limit.MaxInstant,
		}))
	}
	return b
}

// BenchmarkFind looks up a policy and a key in it, with as many policies, entries and keys as are
// used at a time: 1024 keys of one policy, or of 100.
func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		name                    string
		spread, exact, prefixes int
		key                     string
		policies                int
	}{
		{"none", 1, 0, 0, "user:%d", 1},
		{"miss", 1, 10_000, 1000, "user:%d", 1},
		{"miss near", 1, 10_000, 1000, "tenant:%d", 1},
		{"miss of 100 policies", 100, 10_000, 1000, "user:%d", 100},
		{"exact", 1, 10_000, 1000, "customer:%d", 1},
		{"prefix", 1, 10_000, 1000, "tenant:%[1]d:user:%[1]d", 1},
		{"exact of 1000000", 1, 1_000_000, 0, "customer:%d", 1},
		{"miss of 1000000", 1, 1_000_000, 0, "user:%d", 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			table := filled(b, c.spread, c.exact, c.prefixes).Table()
			names, keys := make([][]byte, 1024), make([][]byte, 1024)
			for i := range keys {
				names[i] = fmt.Appendf(nil, "policy-%d", i%c.policies)
				keys[i] = fmt.Appendf(nil, c.key, i*7%1000)
			}
			var a policy.Applied
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				table.Policy(names[i&1023]).Find(keys[i&1023], 1, &a)
			}
		})
	}
}

// BenchmarkTable makes one change, or 10,000, and a table of the result, with 1,000,000 overrides.
func BenchmarkTable(b *testing.B) {
	builder := filled(b, 1, 999_000, 1000)
	limits := limitsOf(b, "TB 300 100 1")
	for _, changes := range []int{1, 10_000} {
		b.Run(fmt.Sprint(changes), func(b *testing.B) {
			entries := make([]policy.Entry, changes)
			for i := range entries {
				entries[i] = policy.Entry{Kind: policy.Override, Policy: "policy-0", Pattern: fmt.Sprint("customer:", i*97), Limits: limits, Until: limit.MaxInstant}
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range entries {
					_ = builder.Set(&entries[i])
				}
				builder.Table()
			}
		})
	}
}

// BenchmarkFill makes a table of 1,000,000 overrides from nothing, as at a start.
func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		filled(b, 1, 1_000_000, 0).Table()
	}
}
