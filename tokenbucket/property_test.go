package tokenbucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawCall draws a valid call of one of the modes.
func drawCall(t *rapid.T, modes ...tokenbucket.Mode) tokenbucket.Call {
	capacity := rapid.Int64Range(1, 30).Draw(t, "capacity")
	c := call(rapid.SampledFrom(modes).Draw(t, "mode"), capacity,
		rapid.Int64Range(1, 5).Draw(t, "count"),
		time.Duration(rapid.Int64Range(5, 5000).Draw(t, "period")))
	c.Quantity = rapid.Int64Range(-2, capacity+1).Draw(t, "quantity")
	if c.Mode == tokenbucket.Warmup {
		c.Warmup = time.Duration(rapid.Int64Range(1, 20000).Draw(t, "warmup"))
	}
	if rapid.Bool().Draw(t, "waits") {
		c.Waits, c.MaxWait = true, time.Duration(rapid.Int64Range(0, 4000).Draw(t, "max wait"))
	}
	return c
}

var allModes = []tokenbucket.Mode{
	tokenbucket.Greedy, tokenbucket.Debt, tokenbucket.Interval, tokenbucket.Leaky, tokenbucket.Warmup,
}

// drawKey returns a key after some calls, and the instant of the last one.
func drawKey(t *rapid.T, modes ...tokenbucket.Mode) (*key, limit.Instant) {
	k, now := new(key), epoch
	for range rapid.IntRange(0, 8).Draw(t, "calls") {
		c := drawCall(t, modes...)
		if rapid.IntRange(0, 3).Draw(t, "force") == 0 && c.Quantity > 0 {
			c.Charge = tokenbucket.Force
		}
		now = now.Add(time.Duration(rapid.Int64Range(0, 3000).Draw(t, "pause")))
		require.NoError(t, k.decide(now, &c))
		k.apply()
	}
	return k, now
}

// TestGreedyDecidesAsThrottle: Greedy decides like CL.THROTTLE with a max burst of one less. All
// durations are compared to the nanosecond.
func TestGreedyDecidesAsThrottle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(1, 1<<20).Draw(t, "capacity")
		period := rapid.Int64Range(1, 1<<40).Draw(t, "period")
		count := rapid.Int64Range(1, period).Draw(t, "count")
		c := call(tokenbucket.Greedy, capacity, count, time.Duration(period))
		if c.Validate() != nil {
			t.Skip("beyond 2^62 ns")
		}
		quota, err := gcra.NewQuotaPer(capacity-1, count, period, time.Nanosecond)
		require.NoError(t, err)

		k, now, tat := new(key), epoch, limit.Instant(0)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			c.Quantity = rapid.Int64Range(0, capacity+1).Draw(t, "quantity")
			now = now.Add(time.Duration(rapid.Int64Range(0, 4*int64(c.Interval)).Draw(t, "pause")))
			require.NoError(t, k.decide(now, &c))
			k.apply()
			next, d, write := gcra.Decide(tat, now, &quota, c.Quantity)
			require.Equal(t, d, k.plan.Decision)
			require.Equal(t, write, k.plan.Action != tokenbucket.Keep)
			tat = next
		}
	})
}

// TestRetryIsExact: a refused call passes at the instant of its retry and not a nanosecond earlier,
// in whatever mode the bucket is stored.
func TestRetryIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := drawKey(t, allModes...)
		c := drawCall(t, allModes...)
		if c.Mode != tokenbucket.Debt && c.Mode != tokenbucket.Warmup && !c.Waits && rapid.Bool().Draw(t, "partial") {
			c.Charge = tokenbucket.Partial
		}
		require.NoError(t, k.decide(now, &c))
		stored := k.plan.Action == tokenbucket.Store
		continuous := c.Mode == tokenbucket.Greedy || c.Mode == tokenbucket.Debt
		k.apply()
		retry := k.plan.Decision.RetryAfter
		if k.plan.Decision.Allowed() || retry == limit.NoRetry {
			return
		}
		if c.Charge == tokenbucket.Partial && k.plan.Decision.Refused < c.Quantity {
			return
		}
		if c.Quantity == 0 && continuous && !stored {
			return // after a later conversion a changed rate may round up once more
		}
		early, onTime := k.clone(), k.clone()
		require.NoError(t, early.decide(now.Add(retry-1), &c))
		require.False(t, early.plan.Decision.Allowed(), "too late by a nanosecond at least")
		require.NoError(t, onTime.decide(now.Add(retry), &c))
		if c.Charge == tokenbucket.Partial && c.Quantity > 0 {
			require.Less(t, onTime.plan.Decision.Refused, c.Quantity)
		} else {
			require.True(t, onTime.plan.Decision.Allowed(), "too early: %+v", onTime.plan.Decision)
		}
	})
}

// TestPeekAgreesWithTheCall: a Peek replies what the call then does. Neither a Peek nor a quantity
// of 0 writes.
func TestPeekAgreesWithTheCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := drawKey(t, allModes...)
		c := drawCall(t, allModes...)
		asked := with(c, peek)
		require.NoError(t, k.decide(now, &asked))
		require.Equal(t, tokenbucket.Keep, k.plan.Action)
		peeked := k.plan.Decision
		require.NoError(t, k.decide(now, &c))
		require.Equal(t, peeked.Refused, k.plan.Decision.Refused)
		require.Equal(t, peeked.RetryAfter, k.plan.Decision.RetryAfter)
		c.Quantity = 0
		require.NoError(t, k.decide(now, &c))
		require.Equal(t, tokenbucket.Keep, k.plan.Action)
	})
}

// TestRefundRestoresTheBalance takes tokens and refunds them at once. The balance is as before.
// Warmup is not tested: it does not refund stored permits, only the waiting.
func TestRefundRestoresTheBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := drawKey(t, allModes[:4]...)
		c := drawCall(t, allModes[:4]...)
		c.Quantity = rapid.Int64Range(1, c.Capacity).Draw(t, "quantity")
		require.NoError(t, k.decide(now, &c)) // stores the call's mode and rate
		if !k.plan.Decision.Allowed() {
			return
		}
		k.apply()
		before := k.plan.Decision
		require.NoError(t, k.decide(now, &c))
		if !k.plan.Decision.Allowed() {
			return
		}
		k.apply()
		back := with(c, quantity(-c.Quantity))
		require.NoError(t, k.decide(now, &back))
		require.Equal(t, before.Remaining, k.plan.Decision.Remaining)
		require.Equal(t, before.ResetAfter, k.plan.Decision.ResetAfter)
	})
}

// TestGreedyNeverExceedsItsBound: over any span Greedy admits no more than the capacity plus the
// tokens of the span. Splitting a quantity into ones never admits less.
func TestGreedyNeverExceedsItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t, tokenbucket.Greedy)
		c.Waits, c.MaxWait = false, 0
		type admission struct {
			at    limit.Instant
			units int64
		}
		var admitted []admission
		whole, split, now := new(key), new(key), epoch
		var wholeUnits, splitUnits int64
		for range rapid.IntRange(1, 25).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 3*int64(c.Interval)).Draw(t, "pause")))
			c.Quantity = rapid.Int64Range(1, c.Capacity).Draw(t, "quantity")
			require.NoError(t, whole.decide(now, &c))
			whole.apply()
			if whole.plan.Decision.Allowed() {
				wholeUnits += c.Quantity
				admitted = append(admitted, admission{now, c.Quantity})
			}
			single := with(c, quantity(1))
			for range c.Quantity {
				require.NoError(t, split.decide(now, &single))
				split.apply()
				if split.plan.Decision.Allowed() {
					splitUnits++
				}
			}
			require.GreaterOrEqual(t, splitUnits, wholeUnits)
		}
		for i := range admitted {
			units := int64(0)
			for _, a := range admitted[i:] {
				units += a.units
				require.LessOrEqual(t, units, c.Capacity+int64(a.at.Sub(admitted[i].at)/c.Interval))
			}
		}
	})
}

// TestExpiryForgetsNothing: from its natural expiry on, a key behaves as if it did not exist, and
// before that it does not.
func TestExpiryForgetsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := drawKey(t, allModes[:4]...)
		if k.mode == tokenbucket.None || k.expiry <= now {
			return
		}
		c := drawCall(t, k.mode)
		c.Mode = k.mode
		at := k.expiry.Add(time.Duration(rapid.Int64Range(0, 10).Draw(t, "later")))
		stored, none := k.clone(), new(key)
		stored.expiry = limit.MaxInstant
		require.NoError(t, stored.decide(at, &c))
		require.NoError(t, none.decide(at, &c))
		require.Equal(t, none.plan.Decision, stored.plan.Decision)

		look := with(c, quantity(0))
		require.NoError(t, k.decide(k.expiry-1, &look))
		require.Positive(t, k.plan.Decision.ResetAfter)
	})
}

// TestDeniedChargesNothing: as a clause of a denied call over several limits, a call replies like a
// Peek and takes nothing, even if it stores a changed rate.
func TestDeniedChargesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := drawKey(t, allModes...)
		c := drawCall(t, tokenbucket.Greedy, tokenbucket.Debt, tokenbucket.Interval)
		asked, refused := with(c, peek), with(c, denied)
		require.NoError(t, k.decide(now, &asked))
		peeked := k.plan.Decision
		require.NoError(t, k.decide(now, &refused))
		require.Equal(t, peeked, k.plan.Decision)
		left := k.mode == tokenbucket.Warmup
		k.apply()
		require.NoError(t, k.decide(now, &asked))
		require.Equal(t, peeked.Refused, k.plan.Decision.Refused)
		require.Equal(t, peeked.RetryAfter, k.plan.Decision.RetryAfter)
		if !left {
			require.Equal(t, peeked, k.plan.Decision)
		}
	})
}

// TestQuantityIsMonotone: if a quantity passes, smaller ones pass, too.
func TestQuantityIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := drawKey(t, allModes...)
		c := drawCall(t, allModes...)
		c.Charge = tokenbucket.Peek
		more := rapid.Int64Range(1, math.MaxInt64).Draw(t, "more")
		c.Quantity = rapid.Int64Range(1, more).Draw(t, "less")
		if c.Validate() != nil {
			return
		}
		require.NoError(t, k.decide(now, &c))
		less := k.plan.Decision
		c.Quantity = more
		if c.Validate() != nil || k.decide(now, &c) != nil {
			return // more than can be stored
		}
		if k.plan.Decision.Allowed() {
			require.True(t, less.Allowed())
		}
	})
}
