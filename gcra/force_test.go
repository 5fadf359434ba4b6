package gcra_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

func quotaOf(t require.TestingT, burst, count, period int64) *gcra.Quota {
	q, err := gcra.NewQuota(burst, count, period)
	require.NoError(t, err)
	return &q
}

// TestForce: three cells, one per second. Each row continues from the row before.
func TestForce(t *testing.T) {
	const second = time.Second
	q := quotaOf(t, 2, 1, 1)
	tat := limit.Instant(0)
	for i, c := range []struct {
		at       time.Duration
		quantity int64
		want     limit.Decision
		write    bool
	}{
		{0, 2, limit.Decision{Limit: 3, Remaining: 1, RetryAfter: limit.NoRetry, ResetAfter: 2 * second}, true},
		{0, 1, limit.Decision{Limit: 3, RetryAfter: limit.NoRetry, ResetAfter: 3 * second}, true},
		{0, 1, limit.Decision{Limit: 3, RetryAfter: 2 * second, ResetAfter: 4 * second}, true},
		{0, 0, limit.Decision{Refused: 1, Limit: 3, RetryAfter: second, ResetAfter: 4 * second}, false},
		{-second, 5, limit.Decision{Limit: 3, RetryAfter: 8 * second, ResetAfter: 10 * second}, true}, // time goes backward
		{second, -1, limit.Decision{Refused: 1, Limit: 3, RetryAfter: 4 * second, ResetAfter: 8 * second}, false},
		{second, -6, limit.Decision{Limit: 3, Remaining: 1, RetryAfter: limit.NoRetry, ResetAfter: 2 * second}, true},
		{second + 1, 1, limit.Decision{Limit: 3, RetryAfter: limit.NoRetry, ResetAfter: 3*second - 1}, true},
		{time.Hour, 9, limit.Decision{Limit: 3, RetryAfter: 7 * second, ResetAfter: 9 * second}, true},
	} {
		var d limit.Decision
		next, write, err := gcra.ForceInto(&d, tat, t0.Add(c.at), q, c.quantity)
		require.NoError(t, err)
		require.Equal(t, c.want, d, "row %d", i)
		require.Equal(t, c.write, write, "row %d", i)
		if !write {
			require.Equal(t, tat, next)
		}
		tat = next
	}
}

func TestForceOfLimitsThatAdmitNothing(t *testing.T) {
	for _, q := range []*gcra.Quota{quotaOf(t, -1, 1, 1), quotaOf(t, -9, 1, 1), quotaOf(t, math.MinInt64, 1, 1)} {
		var d limit.Decision
		next, write, err := gcra.ForceInto(&d, 7, t0, q, 2)
		require.NoError(t, err)
		require.False(t, write)
		require.EqualValues(t, 7, next)
		require.Equal(t, limit.Decision{Refused: 1, Limit: q.Limit(), RetryAfter: limit.NoRetry}, d)
		require.Zero(t, gcra.Free(0, t0, q))
	}
	q := quotaOf(t, 5, -1, 1) // a quota that admits nothing, but may be exceeded
	var d limit.Decision
	next, write, err := gcra.ForceInto(&d, 0, t0, q, 2)
	require.NoError(t, err)
	require.True(t, write)
	require.Equal(t, t0.Add(2*time.Second), next)
	require.Equal(t, limit.Decision{Limit: 6, RetryAfter: limit.NoRetry, ResetAfter: 2 * time.Second}, d)
	require.Zero(t, gcra.Free(0, t0, q))
}

func TestForceEndsWithTime(t *testing.T) {
	rest := int64(limit.MaxInstant.Sub(t0))
	q := quotaOf(t, 0, 1_000_000_000, 1) // a cell takes a nanosecond
	var d limit.Decision
	next, write, err := gcra.ForceInto(&d, 0, t0, q, rest)
	require.NoError(t, err)
	require.True(t, write)
	require.Equal(t, limit.MaxInstant, next)
	require.Equal(t, time.Duration(rest), d.RetryAfter)
	for _, quantity := range []int64{rest + 1, math.MaxInt64} {
		next, write, err = gcra.ForceInto(&d, 0, t0, q, quantity)
		require.ErrorIs(t, err, limit.ErrOverflow)
		require.False(t, write)
		require.Zero(t, next)
	}
	_, _, err = gcra.ForceInto(&d, limit.MaxInstant, t0, q, 1)
	require.ErrorIs(t, err, limit.ErrOverflow)
	_, _, err = gcra.ForceInto(&d, 0, t0, quotaOf(t, math.MaxInt64, 1, math.MaxInt64), math.MaxInt64)
	require.ErrorIs(t, err, limit.ErrOverflow)
}

// TestForceAgreesWithDecide: admitted calls are charged alike. The retry time of an overdrawn key
// is the first instant at which a cell may arrive.
func TestForceAgreesWithDecide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := quotaOf(rt, rapid.Int64Range(0, 10).Draw(rt, "burst"), rapid.Int64Range(1, 1e9).Draw(rt, "count"), rapid.Int64Range(1, 100).Draw(rt, "period"))
		tat := t0.Add(time.Duration(rapid.Int64Range(-int64(time.Minute), int64(time.Minute)).Draw(rt, "debt")))
		quantity := rapid.Int64Range(-5, 20).Draw(rt, "quantity")
		next, d, write := gcra.Decide(tat, t0, q, quantity)
		var forced limit.Decision
		became, wrote, err := gcra.ForceInto(&forced, tat, t0, q, quantity)
		require.NoError(rt, err)
		if d.Allowed() || quantity <= 0 {
			require.Equal(rt, []any{next, d, write}, []any{became, forced, wrote})
			return
		}
		require.True(rt, wrote)
		require.Zero(rt, forced.Refused)
		if forced.RetryAfter == limit.NoRetry {
			require.Zero(rt, forced.Remaining)
			return
		}
		_, d, _ = gcra.Decide(became, t0.Add(forced.RetryAfter-1), q, 1)
		require.False(rt, d.Allowed())
		_, d, _ = gcra.Decide(became, t0.Add(forced.RetryAfter), q, 1)
		require.True(rt, d.Allowed())
	})
}

// TestFreeIsTheMostThatPasses: exactly that many cells pass, and not one more.
func TestFreeIsTheMostThatPasses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := quotaOf(rt, rapid.Int64().Draw(rt, "burst"), rapid.Int64Range(1, 1e9).Draw(rt, "count"), rapid.Int64Range(1, 1<<40).Draw(rt, "period"))
		tat := limit.Instant(rapid.Int64().Draw(rt, "tat"))
		free := gcra.Free(tat, t0, q)
		require.GreaterOrEqual(rt, free, int64(0))
		if free > 0 {
			_, d, _ := gcra.Decide(tat, t0, q, free)
			require.True(rt, d.Allowed())
		}
		if free < math.MaxInt64 {
			_, d, _ := gcra.Decide(tat, t0, q, free+1)
			require.False(rt, d.Allowed())
		}
	})
}
