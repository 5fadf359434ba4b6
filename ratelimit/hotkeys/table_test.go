package hotkeys

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
)

// add adds calls of a key to a table.
func add(t *topTable, db int, key []byte, weight int64) {
	t.add(&notedKey{key: key, db: db, weight: weight, hash: topHash(db, key)}, 0, nil)
}

// sumOf returns the counts of a table for database 0.
func sumOf(t *topTable) map[string]int64 {
	sum, counts := make(map[topName]topCount), make(map[string]int64)
	t.collect(0, sum)
	for name, n := range sum {
		if name.db == 0 {
			counts[name.key] = n.count
		}
	}
	return counts
}

// TestTopTableFindsTheHeavyUnderFlood: keys with a good part of all calls keep their slots
// against a million other keys that occur once each.
func TestTopTableFindsTheHeavyUnderFlood(t *testing.T) {
	effort.Alone(t)
	const flood, heavy = 1_000_000, 10
	var table topTable
	r := rand.New(rand.NewPCG(1, 2))
	truth := make(map[string]int64)
	for i := range flood {
		add(&table, 0, fmt.Appendf(nil, "once:%d", i), 1)
		if r.IntN(4) == 0 {
			key := fmt.Sprintf("heavy:%d", r.IntN(heavy))
			truth[key]++
			add(&table, 0, []byte(key), 1)
		}
	}
	sum := sumOf(&table)
	require.LessOrEqual(t, len(sum), topSlots)
	tenants := make(map[uint64]int)
	for key := range truth {
		tenants[topHash(0, []byte(key))%topSlots/2]++
	}
	for key, n := range truth {
		require.LessOrEqual(t, sum[key], n, "a count is never above the truth")
		// Frequent keys that share a pair of slots may push each other out.
		if tenants[topHash(0, []byte(key))%topSlots/2] == 1 {
			require.Greater(t, sum[key], n/2)
		}
	}
}

// TestTopTableCountsTwoKeysOfASlot: two keys with the same slot are both counted exactly.
func TestTopTableCountsTwoKeysOfASlot(t *testing.T) {
	first := []byte("a")
	var second []byte
	for i := 0; second == nil; i++ {
		if key := fmt.Appendf(nil, "b%d", i); topHash(0, key)%topSlots == topHash(0, first)%topSlots {
			second = key
		}
	}
	var table topTable
	for range 3 {
		add(&table, 0, first, 2)
		add(&table, 0, second, 1)
	}
	require.Equal(t, map[string]int64{"a": 6, string(second): 3}, sumOf(&table))
}

// TestTopTableForgets: a key that is no longer called disappears after a while, and a long key is
// never kept.
func TestTopTableForgets(t *testing.T) {
	var table topTable
	for range 1000 {
		add(&table, 0, []byte("a"), 1)
	}
	add(&table, 0, []byte(strings.Repeat("x", topKey+1)), 1)
	require.Equal(t, map[string]int64{"a": 1000}, sumOf(&table))
	for range 10 {
		table.halve()
	}
	require.Empty(t, sumOf(&table))
}

// TestTopTableKeepsItsKeys: the table copies keys, since the input that they refer to is
// overwritten.
func TestTopTableKeepsItsKeys(t *testing.T) {
	var table topTable
	key := []byte("mine")
	add(&table, 0, key, 3)
	copy(key, "zzzz")
	require.Equal(t, map[string]int64{"mine": 3}, sumOf(&table))
}

// TestTopTableKeepsDatabasesApart: a key in two databases counts as two keys, and neither takes
// the slot of the other.
func TestTopTableKeepsDatabasesApart(t *testing.T) {
	var table topTable
	for db := range 16 {
		for range db + 1 {
			add(&table, db, []byte("same"), 1)
		}
	}
	sum := make(map[topName]topCount)
	require.Equal(t, int64(136), table.collect(0, sum), "the total is of all databases")
	for db := range 16 {
		require.Equal(t, int64(db+1), sum[topName{db, "same"}].count)
	}
}

// TestTopTableResetForgetsEverything: counts, rates and the total have nothing of the calls
// before a reset.
func TestTopTableResetForgetsEverything(t *testing.T) {
	var table topTable
	add(&table, 0, []byte("a"), 5)
	add(&table, 0, []byte(strings.Repeat("x", topKey+1)), 5)
	table.reset()
	sum := make(map[topName]topCount)
	require.Zero(t, table.collect(0, sum))
	require.Empty(t, sum)
	add(&table, 0, []byte("a"), 1)
	require.Equal(t, int64(1), table.collect(0, sum))
	require.Equal(t, topCount{1, 1}, sum[topName{0, "a"}])
}

// TestTopRatesFollowTheLastTenSeconds: a steady rate is shown correctly at any instant, and a
// rate that has ended is 0 after two periods.
func TestTopRatesFollowTheLastTenSeconds(t *testing.T) {
	var r recentCount
	start := limit.Instant(1_700_000_003 * time.Second)
	for i := range 1000 { // 20 per second
		at := start.Add(time.Duration(i) * 50 * time.Millisecond)
		r.add(at, 1)
		if i > 400 {
			require.InDelta(t, 200, r.at(at), 2, "after %d", i)
		}
	}
	end := start.Add(50 * time.Second)
	require.Less(t, r.at(end.Add(6*time.Second)), 150.0)
	require.Zero(t, r.at(end.Add(20*time.Second)))
	require.Zero(t, r.at(end.Add(1<<60)))
	require.Equal(t, time.Second, over(-time.Hour))
	require.Equal(t, 5*time.Second, over(5*time.Second))
	require.Equal(t, recentPeriod, over(time.Hour))
}

// TestTopRatesTakeLateCountsForNow: workers read the clock at different instants, so a count may
// be slightly older than the latest one.
func TestTopRatesTakeLateCountsForNow(t *testing.T) {
	var r recentCount
	r.add(limit.Instant(20*time.Second), 1)
	r.add(limit.Instant(19*time.Second), 1)
	require.InDelta(t, 2, r.at(limit.Instant(20*time.Second)), 0)
}
