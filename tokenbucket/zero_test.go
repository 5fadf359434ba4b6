package tokenbucket_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestCapacityOfZero: a capacity of 0 refuses every quantity in every mode and with every kind of
// charge, and does not change the stored state, in whatever mode that is.
func TestCapacityOfZero(t *testing.T) {
	const now limit.Instant = 1_700_000_000_000_000_000
	modes := []tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Interval, tokenbucket.Leaky, tokenbucket.Debt, tokenbucket.Warmup}
	callOf := func(mode tokenbucket.Mode, capacity, quantity int64) tokenbucket.Call {
		return tokenbucket.Call{
			Mode: mode, Capacity: capacity, Init: capacity, Count: 1, Period: time.Second, Interval: time.Second,
			Quantity: quantity, Cold: 3, Warmup: time.Second,
		}
	}
	all := func(k *key, mode tokenbucket.Mode, reset time.Duration) {
		before := slices.Clone(k.value)
		for _, quantity := range []int64{1, 5, math.MaxInt64} {
			c := callOf(mode, 0, quantity)
			for _, c.Charge = range []tokenbucket.Charge{tokenbucket.Whole, tokenbucket.Peek, tokenbucket.Partial, tokenbucket.Force} {
				require.NoError(t, c.Validate())
				require.NoError(t, k.decide(now, &c))
				refused := int64(1)
				if c.Charge == tokenbucket.Partial {
					refused = quantity
				}
				require.Equal(t, limit.Decision{Refused: refused, RetryAfter: limit.NoRetry, ResetAfter: reset}, k.plan.Decision, "%v", mode)
				require.Equal(t, tokenbucket.Keep, k.plan.Action)
			}
			c.Charge, c.Waits, c.MaxWait = tokenbucket.Whole, true, tokenbucket.NoLimit
			require.NoError(t, k.decide(now, &c))
			require.Equal(t, limit.NoRetry, k.plan.Decision.RetryAfter)
			require.Equal(t, tokenbucket.Keep, k.plan.Action)
		}
		require.Equal(t, before, k.value)
	}
	for _, stored := range modes {
		for _, mode := range modes {
			var k key
			all(&k, mode, 0)
			used := callOf(stored, 5, 2)
			require.NoError(t, k.decide(now, &used))
			k.apply()
			reset := k.plan.Decision.ResetAfter
			all(&k, mode, reset)

			back := callOf(mode, 0, -1)
			require.NoError(t, k.decide(now, &back))
			require.True(t, k.plan.Decision.Allowed())
			require.Zero(t, k.plan.Decision.Remaining)
			k.apply()
			if k.mode != tokenbucket.None {
				require.Equal(t, stored, k.mode, "a refund converts nothing")
				require.NoError(t, tokenbucket.Check(k.mode, k.value))
			}
		}
	}
}
