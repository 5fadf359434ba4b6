package gcra_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// t0 is the instant at which the tables start.
const t0 limit.Instant = 1_700_000_000_000_000_000

// row is one call of a table and its five integers, in the seconds of CL.THROTTLE. A row without
// parameters repeats those of the row before it.
type row struct {
	at   time.Duration // since t0
	args []int64       // max burst, count, period and, if not 1, quantity
	want [5]int64
}

// play runs rows on one key that starts with tat and returns its TAT at the end.
func play(t *testing.T, tat limit.Instant, rows []row) limit.Instant {
	t.Helper()
	for i, r := range rows {
		now := t0.Add(r.at)
		quantity := int64(1)
		if len(r.args) > 3 {
			quantity = r.args[3]
		}
		q, err := gcra.NewQuota(r.args[0], r.args[1], r.args[2])
		require.NoError(t, err)
		next, d, write := gcra.Decide(tat, now, &q, quantity)
		require.Equal(t, r.want, reply(d), "row %d: %v at %v", i, r.args, r.at)
		require.Equal(t, d.Allowed() && quantity != 0, write, "row %d writes", i)
		if !write {
			require.Equal(t, tat, next, "row %d leaves the state", i)
		}
		tat = next
	}
	return tat
}

func reply(d limit.Decision) [5]int64 {
	return [5]int64{d.Refused, d.Limit, d.Remaining, gcra.RetrySeconds(d), limit.CellSeconds(d.ResetAfter)}
}

// repeat returns a row for each reply, all with the same arguments and at the same instant.
func repeat(args []int64, want ...[5]int64) []row {
	rows := make([]row, 0, len(want))
	for _, w := range want {
		rows = append(rows, row{args: args, want: w})
	}
	return rows
}

// TestRepliesAreThoseOfRedisCell plays the replies measured on redis-cell 0.5.0 on a
// fresh key, with the intended reply where its arithmetic is wrong (the name says how).
func TestRepliesAreThoseOfRedisCell(t *testing.T) {
	const maxInt, minInt = math.MaxInt64, math.MinInt64
	tables := map[string][]row{
		"documented":     repeat([]int64{15, 30, 60}, [5]int64{0, 16, 15, -1, 2}),
		"peek":           repeat([]int64{15, 30, 60, 0}, [5]int64{0, 16, 16, -1, 0}),
		"oversize":       repeat([]int64{4, 1, 1, 6}, [5]int64{1, 5, 5, -1, 0}),
		"T of 1.5 s":     repeat([]int64{0, 2, 3}, [5]int64{0, 1, 0, -1, 2}, [5]int64{1, 1, 0, 2, 2}),
		"one per 2 s":    repeat([]int64{0, 1, 2}, [5]int64{0, 1, 0, -1, 2}, [5]int64{1, 1, 0, 2, 2}),
		"signs, zeros":   repeat([]int64{+15, +30, +60, +1}, [5]int64{0, 16, 15, -1, 2}),
		"10,000,000 /s":  repeat([]int64{10, 10_000_000, 1}, [5]int64{0, 11, 10, -1, 0}),
		"1 per ns":       repeat([]int64{10, 1_000_000_000, 1}, [5]int64{0, 11, 10, -1, 0}),
		"refund a fresh": repeat([]int64{15, 30, 60, -1}, [5]int64{0, 16, 16, -1, 0}),
		"all at once": {
			{args: []int64{15, 30, 60, 16}, want: [5]int64{0, 16, 0, -1, 32}},
			{args: []int64{15, 30, 60, 0}, want: [5]int64{0, 16, 0, -1, 32}},
			{args: []int64{15, 30, 60}, want: [5]int64{1, 16, 0, 2, 32}},
		},
		"T is no whole number of seconds": repeat(
			[]int64{6, 7, 60},
			[5]int64{0, 7, 6, -1, 9}, [5]int64{0, 7, 5, -1, 18}, [5]int64{0, 7, 4, -1, 26}, [5]int64{0, 7, 3, -1, 35},
			[5]int64{0, 7, 2, -1, 43}, [5]int64{0, 7, 1, -1, 52}, [5]int64{0, 7, 0, -1, 60}, [5]int64{1, 7, 0, 9, 60},
		),
		"retry of at least 1 s": repeat(
			[]int64{1, 1000, 1},
			[5]int64{0, 2, 1, -1, 1}, [5]int64{0, 2, 0, -1, 1}, [5]int64{1, 2, 0, 1, 1},
		),
		"T below 1 ms limits": repeat(
			[]int64{2, 6000, 1},
			[5]int64{0, 3, 2, -1, 0}, [5]int64{0, 3, 1, -1, 0}, [5]int64{0, 3, 0, -1, 0}, [5]int64{1, 3, 0, 1, 0},
		),
		"remaining is at most the limit": repeat(
			[]int64{6000, 6000, 1}, [5]int64{0, 6001, 6000, -1, 0}, [5]int64{0, 6001, 5999, -1, 0},
		),
		"refund past full": {
			{args: []int64{15, 30, 60, 5}, want: [5]int64{0, 16, 11, -1, 10}},
			{args: []int64{15, 30, 60, -2}, want: [5]int64{0, 16, 13, -1, 6}},
			{args: []int64{15, 30, 60, -3}, want: [5]int64{0, 16, 16, -1, 0}},
			{args: []int64{15, 30, 60, 99}, want: [5]int64{1, 16, 16, -1, 0}},
		},
		"negative max burst": {
			{args: []int64{-1, 30, 60}, want: [5]int64{1, 0, 0, -1, 0}},
			{args: []int64{-2, 30, 60}, want: [5]int64{1, -1, 0, -1, 0}},
			{args: []int64{-5, 30, 60}, want: [5]int64{1, -4, 0, -1, 0}},
			{args: []int64{-1, 30, 60, 0}, want: [5]int64{0, 0, 0, -1, 0}},
			{args: []int64{minInt, 30, 60}, want: [5]int64{1, minInt + 1, 0, -1, 0}},
		},
		"negative max burst on a used key": {
			{args: []int64{4, 1, 10, 2}, want: [5]int64{0, 5, 3, -1, 20}},
			{args: []int64{-1, 1, 10, 0}, want: [5]int64{1, 0, 0, 20, 20}},
			{args: []int64{-2, 1, 10, 0}, want: [5]int64{1, -1, 0, -1, 20}},
			{args: []int64{-3, 1, 10, -9}, want: [5]int64{0, -2, 0, -1, 0}},
		},
		"count or period negative": {
			{args: []int64{5, -30, 60}, want: [5]int64{1, 6, 0, -1, 0}},
			{args: []int64{5, 30, -60}, want: [5]int64{1, 6, 0, -1, 0}},
			{args: []int64{5, -30, 60, -1}, want: [5]int64{1, 6, 0, -1, 0}},
			{args: []int64{5, -30, -60}, want: [5]int64{0, 6, 5, -1, 2}},
			{args: []int64{5, -30, 60, 0}, want: [5]int64{1, 6, 0, -1, 2}},
			{args: []int64{5, minInt, minInt}, want: [5]int64{0, 6, 3, -1, 3}},
		},
		"big burst, long interval":  repeat([]int64{1_000_000, 1, 86_400}, [5]int64{0, 1_000_001, 1_000_000, -1, 86_400}),
		"T of 317 years":            repeat([]int64{5, 1, 10_000_000_000}, [5]int64{1, 6, 6, -1, 0}),
		"T of 100 years":            repeat([]int64{5, 1, 3_153_600_000}, [5]int64{0, 6, 5, -1, 3_153_600_000}),
		"T saturates":               repeat([]int64{0, 1, maxInt}, [5]int64{1, 1, 1, -1, 0}),
		"max burst saturates":       repeat([]int64{maxInt, 30, 60}, [5]int64{0, maxInt, maxInt - 1, -1, 2}),
		"largest refund":            repeat([]int64{15, 30, 60, minInt}, [5]int64{0, 16, 16, -1, 0}),
		"largest quantity":          repeat([]int64{15, 30, 60, maxInt}, [5]int64{1, 16, 16, -1, 0}),
		"largest quantity and rate": repeat([]int64{maxInt, 30, 60, maxInt}, [5]int64{1, maxInt, maxInt, -1, 0}),
		"largest quantity, T 1 ns":  repeat([]int64{maxInt, 1_000_000_000, 1, maxInt}, [5]int64{1, maxInt, maxInt, -1, 0}),
		"a raised rate denies": {
			{args: []int64{15, 10, 20, 3}, want: [5]int64{0, 16, 13, -1, 6}},
			{args: []int64{15, 1000, 20}, want: [5]int64{1, 16, 0, 6, 6}},
			{args: []int64{15, 1000, 20, 0}, want: [5]int64{1, 16, 0, 6, 6}},
		},
		"a changed burst": {
			{args: []int64{9, 1, 10, 8}, want: [5]int64{0, 10, 2, -1, 80}},
			{args: []int64{1, 1, 10}, want: [5]int64{1, 2, 0, 70, 80}},
			{args: []int64{1, 1, 10, 0}, want: [5]int64{1, 2, 0, 60, 80}},
			{args: []int64{19, 1, 10, 0}, want: [5]int64{0, 20, 12, -1, 80}},
		},
	}
	for name, rows := range tables {
		t.Run(name, func(t *testing.T) { play(t, 0, rows) })
	}
}

// TestDecideStartsFromAnyStoredTAT starts from a TAT that was stored by other means.
func TestDecideStartsFromAnyStoredTAT(t *testing.T) {
	play(t, t0.Add(100*time.Second), []row{{args: []int64{4, 1, 10}, want: [5]int64{1, 5, 0, 60, 100}}})
	for _, past := range []limit.Instant{1, 0, -1, limit.MinInstant, t0 - 1, t0} {
		play(t, past, []row{
			{args: []int64{4, 1, 10, 0}, want: [5]int64{0, 5, 5, -1, 0}},
			{args: []int64{4, 1, 10, 9}, want: [5]int64{1, 5, 5, -1, 0}},
			{args: []int64{4, 1, 10, 5}, want: [5]int64{0, 5, 0, -1, 50}},
		})
	}
}

// TestTimed is the timeline of redis-cell's tests: a limit of 5, one per second. The last row
// goes back in time: the later charges are still owed.
func TestTimed(t *testing.T) {
	args := func(quantity int64) []int64 { return []int64{4, 1, 1, quantity} }
	rows := []row{
		{at: 0, args: args(6), want: [5]int64{1, 5, 5, -1, 0}},
		{at: 0, args: args(1), want: [5]int64{0, 5, 4, -1, 1}},
		{at: 0, args: args(1), want: [5]int64{0, 5, 3, -1, 2}},
		{at: 0, args: args(1), want: [5]int64{0, 5, 2, -1, 3}},
		{at: 0, args: args(1), want: [5]int64{0, 5, 1, -1, 4}},
		{at: 0, args: args(1), want: [5]int64{0, 5, 0, -1, 5}},
		{at: 0, args: args(1), want: [5]int64{1, 5, 0, 1, 5}},
		{at: 3000, args: args(1), want: [5]int64{0, 5, 2, -1, 3}},
		{at: 3100, args: args(1), want: [5]int64{0, 5, 1, -1, 4}},
		{at: 4000, args: args(1), want: [5]int64{0, 5, 1, -1, 4}},
		{at: 8000, args: args(1), want: [5]int64{0, 5, 4, -1, 1}},
		{at: 9500, args: args(1), want: [5]int64{0, 5, 4, -1, 1}},
		{at: 9500, args: args(0), want: [5]int64{0, 5, 4, -1, 1}},
		{at: 9500, args: args(2), want: [5]int64{0, 5, 2, -1, 3}},
		{at: 9500, args: args(5), want: [5]int64{1, 5, 2, 3, 3}},
		{at: 15000, args: args(6), want: [5]int64{1, 5, 5, -1, 0}},
		{at: 11000, args: args(1), want: [5]int64{0, 5, 2, -1, 3}},
	}
	for i := range rows {
		rows[i].at *= time.Millisecond
	}
	play(t, 0, rows)
}

// TestInstantsAreExactToTheNanosecond checks that decisions are exact to the nanosecond, which
// the seconds of a reply do not show.
func TestInstantsAreExactToTheNanosecond(t *testing.T) {
	q, err := gcra.NewQuota(6, 7, 60)
	require.NoError(t, err)
	next, d, write := gcra.Decide(0, t0, &q, 3)
	require.True(t, write)
	require.Equal(t, t0+3*8_571_428_571, next)
	require.Equal(t, limit.Decision{Limit: 7, Remaining: 4, RetryAfter: limit.NoRetry, ResetAfter: 25_714_285_713}, d)

	_, d, write = gcra.Decide(next, t0+1, &q, 5)
	require.False(t, write)
	require.Equal(t, limit.Decision{Refused: 1, Limit: 7, Remaining: 4, RetryAfter: 8_571_428_570, ResetAfter: 25_714_285_712}, d)
	_, d, _ = gcra.Decide(next, t0+8_571_428_570, &q, 5)
	require.False(t, d.Allowed(), "1 ns before the retry instant")
	_, d, _ = gcra.Decide(next, t0+8_571_428_571, &q, 5)
	require.True(t, d.Allowed(), "at the retry instant")
}

// TestEndOfTime: the last instant that exists can be a TAT; the one after it cannot.
func TestEndOfTime(t *testing.T) {
	q, err := gcra.NewQuota(math.MaxInt64, 1_000_000_000, 1)
	require.NoError(t, err)
	room := int64(limit.MaxInstant.Sub(t0))
	next, d, write := gcra.Decide(0, t0, &q, room)
	require.True(t, write)
	require.Equal(t, limit.MaxInstant, next)
	require.Equal(t, time.Duration(room), d.ResetAfter)

	_, d, write = gcra.Decide(0, t0, &q, room+1)
	require.False(t, write)
	require.Equal(t, limit.Decision{Refused: 1, Limit: math.MaxInt64, Remaining: math.MaxInt64, RetryAfter: limit.NoRetry}, d)

	_, d, write = gcra.Decide(limit.MaxInstant, limit.MaxInstant, &q, 1)
	require.False(t, write)
	require.Equal(t, limit.NoRetry, d.RetryAfter)
}

func TestRetrySeconds(t *testing.T) {
	for _, c := range []struct {
		refused int64
		retry   time.Duration
		want    int64
	}{
		{0, limit.NoRetry, -1},
		{1, limit.NoRetry, -1},
		{1, 1, 1},
		{1, time.Millisecond - 1, 1},
		{1, time.Millisecond, 1},
		{1, time.Second + time.Millisecond - 1, 1},
		{1, time.Second + time.Millisecond, 2},
		{1, math.MaxInt64, 9223372037},
	} {
		d := limit.Decision{Refused: c.refused, RetryAfter: c.retry}
		require.Equal(t, c.want, gcra.RetrySeconds(d), "%d %d", c.refused, c.retry)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	q, err := gcra.NewQuota(15, 30, 60)
	require.NoError(t, err)
	tat, now := limit.Instant(0), t0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		tat, _, _ = gcra.Decide(tat, now, &q, 1)
		now++
	}))
}

func BenchmarkDecide(b *testing.B) {
	q, err := gcra.NewQuota(15, 1000, 1)
	require.NoError(b, err)
	b.ReportAllocs()
	tat, now := limit.Instant(0), t0
	for b.Loop() {
		tat, _, _ = gcra.Decide(tat, now, &q, 1)
		now += 500_000
	}
}

func BenchmarkNewQuota(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		q, err := gcra.NewQuota(15, 30, 60)
		if err != nil || q.Limit() != 16 {
			b.Fatal(q, err)
		}
	}
}
