package policy_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// boosted returns the call of a clause after Boost.
func boosted(c *policy.Clause, thousandths int64) *clause.Room {
	room := &clause.Room{Quantity: 77, HasQuantity: true, KeyPhase: true}
	c.Boost(thousandths, room)
	return room
}

// TestBoost: each clause becomes the clause with the multiplied numbers.
func TestBoost(t *testing.T) {
	for _, row := range []struct {
		clause      string
		thousandths int64
		want        string
	}{
		{"TB 200 100 1", 1500, "TB 300 150 1"},
		{"TB 200 100 1 DEBT", 500, "TB 100 50 1 DEBT"},
		{"TB 3 3 1", 1500, "TB 4 4 1"},
		{"TB 3 3 1", 1, "TB 1 1 1"},
		{"TB 10 7 60 INTERVAL INIT 5", 2000, "TB 20 14 60 INTERVAL INIT 10"},
		{"TB 10 7 60 INIT 0", 2000, "TB 20 14 60 INIT 0"},
		{"TB 10 7 60 INIT 3", 500, "TB 5 3 60 INIT 1"},
		{"TB 1 1000000000 1", 1_000_000, "TB 1000 1000000000 1"},
		{"TB 1 1 4611686018", 2000, "TB 2 2 4611686018"},
		{"TB 1 1 4611686018", 1500, "TB 1 1 4611686018"},
		{"TB 2 1 1537228672 DEBT", 1500, "TB 2 1 1537228672 DEBT"},
		{"TB 1 2 4611686018 DEBT", 500, "TB 1 2 4611686018 DEBT"},
		{"TB 1 2 9223372036", 500, "TB 1 2 9223372036"},
		{"SW 100000 86400 FIXED", 333, "SW 33300 86400 FIXED"},
		{"SW 60 60 LOG", 10_000, "SW 100 60 LOG"},
		{"SW 9223372036854775807 60", 1001, "SW 9223372036854775807 60"},
		{"SW 9223372036854775807 60", 1, "SW 9223372036854775 60"},
		{"CC 5 60", 1500, "CC 7 60"},
		{"CC 5 60", 1, "CC 1 60"},
		{"CC 9223372036854775807 60", 2000, "CC 9223372036854775807 60"},
		{"CL 15 30 60", 1500, "CL 23 45 60"},
		{"CL 0 1 60", 100, "CL 0 1 60"},
		{"CL 9 10 60", 500, "CL 4 5 60"},
		{"CL -1 30 60", 2000, "CL -1 60 60"},
		{"SW 0 60", 1_000_000, "SW 0 60"},
		{"SW 0 60 LOG", 500, "SW 0 60 LOG"},
		{"TB 0 5 60", 2000, "TB 0 10 60"},
		{"TB 0 5 60 DEBT INIT 0", 2000, "TB 0 10 60 DEBT INIT 0"},
		{"TB 0 5 60 INTERVAL", 2000, "TB 0 10 60 INTERVAL"},
		{"CC 0 60", 2000, "CC 0 60"},
		{"CL -5 30 60", 500, "CL -5 15 60"},
		{"CL 9223372036854775807 1 1", 2000, "CL 9223372036854775807 2 1"},
		{"CL 0 1000000000 1", 5000, "CL 4 1000000000 1"},
	} {
		bounds := policy.Bounds{LogMaxEntries: 100}
		l, err := policy.ParseLimits(words(row.clause), false, bounds)
		require.Empty(t, err, row.clause)
		want, err := policy.ParseLimits(words(row.want), false, bounds)
		require.Empty(t, err, row.want)
		require.Equal(t, boosted(&want.Clauses[0], policy.OneFactor), boosted(&l.Clauses[0], row.thousandths), "%s times %d", row.clause, row.thousandths)
	}
}

// TestBoostRoom: Boost overwrites the previous content of the room, and does not change the clause.
func TestBoostRoom(t *testing.T) {
	l := limitsOf(t, "SW 5 60 ANCHOR KEY")
	room := boosted(&l.Clauses[0], 2000)
	require.Equal(t, clause.Window, room.Kind)
	require.True(t, room.KeyPhase)
	require.False(t, room.HasQuantity)
	require.Equal(t, int64(1), room.Quantity)
	require.Equal(t, int64(5), l.Clauses[0].Window.Limit)
	require.NotEqual(t, room.Clause([]byte("a")).Window.Phase, boosted(&l.Clauses[0], 1000).Clause([]byte("b")).Window.Phase)
	require.Zero(t, l.Clauses[0].Window.Phase)
	require.False(t, boosted(&limitsOf(t, "CL 1 1 1").Clauses[0], 1000).KeyPhase)
}

// drawClause draws a clause that may be valid, with numbers of all sizes.
func drawClause(t *rapid.T) string {
	number := func(name string) int64 {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, name) >> rapid.IntRange(0, 62).Draw(t, name+" shift")
		return max(1, n)
	}
	switch rapid.SampledFrom([]string{"TB", "SW", "CL", "CC"}).Draw(t, "kind") {
	case "TB":
		capacity := number("capacity")
		text := fmt.Sprintf("TB %d %d %d %s", capacity, number("count"), number("period"), rapid.SampledFrom([]string{"", "INTERVAL", "DEBT"}).Draw(t, "mode"))
		if rapid.Bool().Draw(t, "init") {
			text += fmt.Sprintf(" INIT %d", rapid.Int64Range(0, capacity).Draw(t, "tokens"))
		}
		return text
	case "SW":
		if rapid.IntRange(0, 3).Draw(t, "calendar") == 0 {
			return fmt.Sprintf("SW %d %s ZONE Europe/Berlin", number("limit"), rapid.SampledFrom([]string{"DAY", "MONTH FIXED", "YEAR"}).Draw(t, "unit"))
		}
		return fmt.Sprintf("SW %d %d %s", number("limit"), number("window"), rapid.SampledFrom([]string{"", "FIXED", "LOG", "BUCKETS 7 EVEN"}).Draw(t, "mode"))
	case "CC":
		return fmt.Sprintf("CC %d %d", number("limit"), number("lease"))
	default:
		return fmt.Sprintf("CL %d %d %d", number("burst")-rapid.Int64Range(0, 3).Draw(t, "less"), number("count"), number("period"))
	}
}

// checkBoost checks a factor and a higher one: both results are valid, and that of the higher
// factor allows no less.
func checkBoost(t require.TestingT, c *policy.Clause, low, high int64) {
	a, b := boosted(c, low), boosted(c, high)
	switch c.Kind {
	case clause.Cell:
		require.Positive(t, a.Quota.Interval())
		require.Positive(t, b.Quota.Interval())
		require.GreaterOrEqual(t, a.Quota.Interval(), b.Quota.Interval())
		require.LessOrEqual(t, a.Quota.Limit(), b.Quota.Limit())
		if c.Quota.Limit() > 0 {
			require.Positive(t, a.Quota.Limit())
		}
	case clause.Window:
		require.NoError(t, a.Window.Validate())
		require.NoError(t, b.Window.Validate())
		require.LessOrEqual(t, a.Window.Limit, b.Window.Limit)
	case clause.Lease:
		require.NoError(t, a.Lease.Validate())
		require.NoError(t, b.Lease.Validate())
		require.LessOrEqual(t, a.Lease.Limit, b.Lease.Limit)
	case clause.Bucket:
		require.NoError(t, a.Bucket.Validate())
		require.NoError(t, b.Bucket.Validate())
		require.LessOrEqual(t, a.Bucket.Capacity, b.Bucket.Capacity)
		require.LessOrEqual(t, a.Bucket.Count, b.Bucket.Count)
		require.LessOrEqual(t, a.Bucket.Init, b.Bucket.Init)
		require.GreaterOrEqual(t, a.Bucket.Interval, b.Bucket.Interval)
		require.Positive(t, a.Bucket.Capacity)
		require.Positive(t, a.Bucket.Count)
		require.GreaterOrEqual(t, a.Bucket.Init, int64(0))
		require.LessOrEqual(t, b.Bucket.Init, b.Bucket.Capacity)
		if c.Bucket.Init == c.Bucket.Capacity {
			require.Equal(t, b.Bucket.Capacity, b.Bucket.Init)
		}
	}
}

// TestBoostIsValid: for every valid clause and every factor the result is valid, a factor of 1
// changes nothing, and a higher one allows no less.
func TestBoostIsValid(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		l, err := policy.ParseLimits(words(drawClause(t)), rapid.Bool().Draw(t, "ms"), policy.Bounds{LogMaxEntries: 1000})
		if err != "" {
			return
		}
		valid++
		c := &l.Clauses[0]
		factor := rapid.Custom(func(t *rapid.T) int64 {
			return max(1, rapid.Int64Range(1, policy.MaxFactor).Draw(t, "factor")>>rapid.IntRange(0, 19).Draw(t, "shift"))
		})
		low, high := factor.Draw(t, "low"), factor.Draw(t, "high")
		checkBoost(t, c, min(low, high), max(low, high))
		checkBoost(t, c, min(low, policy.OneFactor), policy.OneFactor)
		checkBoost(t, c, policy.OneFactor, max(low, policy.OneFactor))
		same := boosted(c, policy.OneFactor)
		switch c.Kind {
		case clause.Cell:
			require.Equal(t, *c.Quota, same.Quota)
		case clause.Window:
			require.Equal(t, *c.Window, same.Window)
		case clause.Bucket:
			require.Equal(t, *c.Bucket, same.Bucket)
		case clause.Lease:
			require.Equal(t, *c.Lease, same.Lease)
		}
	})
	require.NotZero(t, valid)
}

// TestBoostBeyondFloats: intervals are computed in floats, so counts just beyond the exact bounds
// may be valid. They stay valid.
func TestBoostBeyondFloats(t *testing.T) {
	for _, text := range []string{
		"TB 1 9223372036000000001 9223372036", // less than 1 ns
		"CL 1 9223372036000000001 9223372036",
		"TB 1 1000000000 4611686018427387905",                   // more than 2^62 ns
		"TB 4611686018427387904 9223372036000000000 9223372036", // a capacity of 2^62 times 1 ns
	} {
		l, err := policy.ParseLimits(words(text), false, policy.Bounds{})
		require.Empty(t, err, text)
		for _, low := range []int64{1, 500, 999, 1000, 1001} {
			for _, high := range []int64{1000, 1001, 1500, policy.MaxFactor} {
				checkBoost(t, &l.Clauses[0], min(low, high), max(low, high))
			}
		}
	}
}

func TestBoostAllocatesNothing(t *testing.T) {
	l := limitsOf(t, "TB 200 100 1 SW 5 60 LOG CL 15 30 60 CC 5 60")
	var room clause.Room
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range l.Clauses {
			l.Clauses[i].Boost(1500, &room)
		}
	}))
}

func BenchmarkBoost(b *testing.B) {
	for _, text := range []string{"TB 200 100 1", "SW 5 60", "CL 15 30 60"} {
		c := &limitsOf(b, text).Clauses[0]
		for _, factor := range []int64{policy.OneFactor, 1500} {
			b.Run(fmt.Sprintf("%s times %d", text[:2], factor), func(b *testing.B) {
				var room clause.Room
				b.ReportAllocs()
				for b.Loop() {
					c.Boost(factor, &room)
				}
			})
		}
	}
}
