package commands

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sumOf(t *topTable) map[string]int64 {
	sum := make(map[string]int64)
	t.collect(sum)
	return sum
}

// TestTopTableFindsTheHeavyUnderFlood: keys that make up a good part of all calls
// keep their slots against a million others that are never the same twice.
func TestTopTableFindsTheHeavyUnderFlood(t *testing.T) {
	const flood, heavy = 1_000_000, 10
	var table topTable
	r := rand.New(rand.NewPCG(1, 2))
	truth := make(map[string]int64)
	for i := range flood {
		table.add(fmt.Appendf(nil, "once:%d", i), 1)
		if r.IntN(4) == 0 {
			key := fmt.Sprintf("heavy:%d", r.IntN(heavy))
			truth[key]++
			table.add([]byte(key), 1)
		}
	}
	sum := sumOf(&table)
	require.LessOrEqual(t, len(sum), topSlots)
	tenants := make(map[uint64]int)
	for key := range truth {
		tenants[maphash.String(topSeed, key)%topSlots]++
	}
	for key, n := range truth {
		require.LessOrEqual(t, sum[key], n, "a count is never above the truth")
		// Two heavy keys that share a slot keep each other out of it.
		if tenants[maphash.String(topSeed, key)%topSlots] == 1 {
			require.Greater(t, sum[key], n/2)
		}
	}
}

// TestTopTableForgets: what has stopped is gone after a while, and a long key is not
// remembered at all.
func TestTopTableForgets(t *testing.T) {
	var table topTable
	for range 1000 {
		table.add([]byte("a"), 1)
	}
	table.add([]byte(strings.Repeat("x", topKey+1)), 1)
	require.Equal(t, map[string]int64{"a": 1000}, sumOf(&table))
	for range 10 {
		table.halve()
	}
	require.Empty(t, sumOf(&table))
}

// TestTopTableKeepsItsKeys: the table copies keys, since the input they lie in is
// overwritten.
func TestTopTableKeepsItsKeys(t *testing.T) {
	var table topTable
	key := []byte("mine")
	table.add(key, 3)
	copy(key, "zzzz")
	require.Equal(t, map[string]int64{"mine": 3}, sumOf(&table))
}
