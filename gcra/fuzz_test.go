package gcra_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// FuzzDecide compares one call with arbitrary arguments with the definition in arbitrary
// precision, and checks what every caller relies on.
func FuzzDecide(f *testing.F) {
	const maxInt, minInt = 1<<63 - 1, -1 << 63
	f.Add(int64(0), int64(t0), int64(15), int64(30), int64(60), int64(1))
	f.Add(int64(t0)+1, int64(t0), int64(0), int64(7), int64(60), int64(-1))
	f.Add(int64(maxInt), int64(t0), int64(maxInt), int64(1), int64(maxInt), int64(maxInt))
	f.Add(int64(minInt), int64(0), int64(minInt), int64(minInt), int64(minInt), int64(minInt))
	f.Add(int64(t0)+5, int64(t0), int64(-3), int64(1), int64(1), int64(-9))
	f.Add(int64(t0)+5e9, int64(t0), int64(4), int64(-1), int64(1), int64(5))
	f.Add(int64(maxInt), int64(minInt), int64(4), int64(1), int64(1), int64(5))
	f.Fuzz(func(t *testing.T, tatNs, nowNs, burst, count, period, quantity int64) {
		q, err := gcra.NewQuota(burst, count, period)
		if err != nil {
			require.ErrorIs(t, err, gcra.ErrZeroRate)
			return
		}
		tat, now := limit.Instant(tatNs), limit.Instant(nowNs)
		next, d, write := gcra.Decide(tat, now, &q, quantity)
		if !write {
			require.Equal(t, tat, next, "an unwritten state is the old one")
		}
		require.GreaterOrEqual(t, d.Remaining, int64(0))
		require.LessOrEqual(t, d.Remaining, max(q.Limit(), 0))
		require.GreaterOrEqual(t, d.ResetAfter, time.Duration(0))
		require.True(t, d.RetryAfter == limit.NoRetry || !d.Allowed() && d.RetryAfter > 0, "retry %d", d.RetryAfter)
		if now < 0 {
			return // before 1970 a debt may not fit a duration; it is enough that Decide returns
		}
		agreesWithDefinition(t, tat, now, &q, (count < 0) != (period < 0), quantity)
		if quantity < 1<<63-1 {
			_, more, _ := gcra.Decide(tat, now, &q, quantity+1)
			require.GreaterOrEqual(t, more.Refused, d.Refused, "asking for more never helps")
		}
		if d.RetryAfter > 1 {
			_, early, _ := gcra.Decide(tat, now.Add(d.RetryAfter-1), &q, quantity)
			require.False(t, early.Allowed(), "before the retry instant")
			_, due, _ := gcra.Decide(tat, now.Add(d.RetryAfter), &q, quantity)
			require.True(t, due.Allowed() || due.RetryAfter == limit.NoRetry, "at the retry instant")
		}
	})
}

// agreesWithDefinition compares one decision with the formulas of the package comment, computed
// in integers without bounds.
func agreesWithDefinition(t *testing.T, tat, now limit.Instant, q *gcra.Quota, denies bool, quantity int64) {
	t.Helper()
	n := big.NewInt
	interval := n(int64(q.Interval()))
	debt := new(big.Int).Sub(n(int64(tat)), n(int64(now)))
	if debt.Sign() < 0 {
		debt.SetInt64(0)
	}
	used := bigCeil(debt, interval)
	asked := new(big.Int).Add(used, n(quantity))
	after := new(big.Int).Mul(interval, n(quantity))
	if after.Add(after, debt); after.Sign() < 0 {
		after.SetInt64(0)
	}
	stored := new(big.Int).Add(n(int64(now)), after)

	next, d, write := gcra.Decide(tat, now, q, quantity)
	require.Equal(t, q.Limit(), d.Limit)
	require.Equal(t, !denies && asked.Cmp(n(q.Limit())) <= 0 && stored.IsInt64(), d.Allowed())
	if d.Allowed() {
		require.Equal(t, quantity != 0, write)
		require.Equal(t, after.String(), n(int64(d.ResetAfter)).String())
		if write {
			require.Equal(t, stored.String(), n(int64(next)).String())
		}
		used = bigCeil(after, interval)
	} else {
		require.False(t, write)
		require.Equal(t, debt.String(), n(int64(d.ResetAfter)).String())
	}
	left := new(big.Int).Sub(n(q.Limit()), used)
	if left.Sign() < 0 || denies {
		left.SetInt64(0)
	}
	require.Equal(t, left.String(), n(d.Remaining).String())
}

func bigCeil(a, b *big.Int) *big.Int {
	quo, rem := new(big.Int).QuoRem(a, b, new(big.Int))
	if rem.Sign() > 0 {
		quo.Add(quo, big.NewInt(1))
	}
	return quo
}

// TestSequences makes random calls on one key. The units admitted in any time span are bounded, a
// refund undoes a charge, a peek and a denial change nothing, and the remaining quantity never
// decreases by waiting.
func TestSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.Int64Range(0, 50).Draw(t, "burst")
		count := rapid.Int64Range(1, 5000).Draw(t, "count")
		period := rapid.Int64Range(1, 100).Draw(t, "period")
		q, err := gcra.NewQuota(burst, count, period)
		require.NoError(t, err)
		var (
			tat, now, start = limit.Instant(0), t0, t0
			admitted        int64
		)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			step := rapid.OneOf(
				rapid.Just(int64(0)),
				rapid.Int64Range(0, int64(q.Interval())*2),
				rapid.Int64Range(0, int64(q.Interval())*q.Limit()*2),
			).Draw(t, "step")
			_, before, _ := gcra.Decide(tat, now, &q, 0)
			now += limit.Instant(step)
			_, peek, write := gcra.Decide(tat, now, &q, 0)
			require.False(t, write)
			require.GreaterOrEqual(t, peek.Remaining, before.Remaining)

			quantity := rapid.Int64Range(1, q.Limit()+2).Draw(t, "quantity")
			next, d, write := gcra.Decide(tat, now, &q, quantity)
			require.Equal(t, quantity <= peek.Remaining, d.Allowed())
			require.Equal(t, d.Allowed(), write)
			if !d.Allowed() {
				require.Equal(t, tat, next)
				continue
			}
			require.Equal(t, peek.Remaining-quantity, d.Remaining)
			undone, refund, _ := gcra.Decide(next, now, &q, -quantity)
			require.Equal(t, max(tat, now), undone)
			require.Equal(t, peek.Remaining, refund.Remaining)
			tat = next
			admitted += quantity
			bound := q.Limit() + int64(now.Sub(start))/int64(q.Interval())
			require.LessOrEqual(t, admitted, bound)
		}
	})
}

// TestSplitting: the same quantity in calls of one is never admitted less.
func TestSplitting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, err := gcra.NewQuota(rapid.Int64Range(0, 20).Draw(t, "burst"), rapid.Int64Range(1, 9).Draw(t, "count"), 7)
		require.NoError(t, err)
		tat := t0.Add(time.Duration(rapid.Int64Range(0, 200e9).Draw(t, "debt")))
		quantity := rapid.Int64Range(1, 25).Draw(t, "quantity")
		whole, d, _ := gcra.Decide(tat, t0, &q, quantity)
		ones := int64(0)
		for range quantity {
			next, one, _ := gcra.Decide(tat, t0, &q, 1)
			tat = next
			ones += 1 - one.Refused
		}
		if d.Allowed() {
			require.Equal(t, quantity, ones)
			require.Equal(t, whole, tat)
		}
	})
}
