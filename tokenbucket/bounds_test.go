package tokenbucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// bulky returns a call whose bucket fills up in 2^62 ns.
func bulky(mode tokenbucket.Mode) tokenbucket.Call {
	return call(mode, 1<<31, 1, 1<<31)
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		call tokenbucket.Call
		want error
	}{
		"fits":                 {bulky(tokenbucket.Greedy), nil},
		"rate too high":        {call(tokenbucket.Greedy, 1, 1001, 1000), limit.ErrRateTooHigh},
		"1 ns too long":        {call(tokenbucket.Interval, 1<<31+1, 1, 1<<31), limit.ErrOverflow},
		"64 bits too long":     {call(tokenbucket.Leaky, math.MaxInt64, 1, math.MaxInt64), limit.ErrOverflow},
		"forced later":         {with(bulky(tokenbucket.Greedy), quantity(math.MaxInt64)), nil},
		"debt fits":            {with(call(tokenbucket.Debt, 1<<30, 1, 1<<31), quantity(1<<30)), nil},
		"debt too long":        {with(call(tokenbucket.Debt, 1<<30, 1, 1<<31), quantity(1<<30+1)), limit.ErrOverflow},
		"debt far too long":    {with(call(tokenbucket.Debt, 1<<30, 1, 1<<31), quantity(math.MaxInt64)), limit.ErrOverflow},
		"debt of a refund":     {with(bulky(tokenbucket.Debt), quantity(math.MinInt64)), nil},
		"warm-up fits":         {with(call(tokenbucket.Warmup, 1, 1, 1<<31), warmup(1<<61, 1<<31)), nil},
		"warm-up too long":     {with(call(tokenbucket.Warmup, 1, 1, 1), warmup(1<<61+1, 3)), limit.ErrOverflow},
		"cold factor too high": {with(call(tokenbucket.Warmup, 1, 1, 1<<31), warmup(1, 1<<31+1)), limit.ErrOverflow},
	} {
		require.Equal(t, c.want, c.call.Validate(), name)
	}
}

// TestTooLargeDebtIsAnErrorAndChangesNothing asks for a debt of more than 2^62 ns. The
// call and a Peek of it fail and write nothing.
func TestTooLargeDebtIsAnErrorAndChangesNothing(t *testing.T) {
	full := func(mode tokenbucket.Mode) *key {
		k := new(key)
		k.do(t, epoch, with(bulky(mode), quantity(1<<31)))
		return k
	}
	small := call(tokenbucket.Greedy, 1, 1, 1<<31)
	for name, s := range map[string]struct {
		key  *key
		call tokenbucket.Call
	}{
		"greedy forced":      {full(tokenbucket.Greedy), with(small, force)},
		"greedy reserved":    {full(tokenbucket.Greedy), with(bulky(tokenbucket.Greedy), wait(tokenbucket.NoLimit))},
		"greedy peeked":      {full(tokenbucket.Greedy), with(bulky(tokenbucket.Greedy), wait(tokenbucket.NoLimit), peek)},
		"greedy by product":  {new(key), with(bulky(tokenbucket.Greedy), quantity(math.MaxInt64), force)},
		"greedy dearer":      {full(tokenbucket.Greedy), call(tokenbucket.Greedy, 1, 1, 1<<31+1)},
		"dearer, only asked": {full(tokenbucket.Greedy), with(call(tokenbucket.Greedy, 1, 1, 1<<31+1), quantity(0))},
		"interval forced":    {full(tokenbucket.Interval), with(bulky(tokenbucket.Interval), force)},
		"interval counted":   {full(tokenbucket.Interval), with(bulky(tokenbucket.Interval), quantity(math.MaxInt64), force)},
		"interval by period": {new(key), call(tokenbucket.Interval, 1, math.MaxInt64, math.MaxInt64)},
		"leaky forced":       {full(tokenbucket.Leaky), with(bulky(tokenbucket.Leaky), force)},
		"warm-up forced":     {new(key), with(call(tokenbucket.Warmup, 1, 1, 1<<61), warmup(1, 1), quantity(3), force)},
		"converted":          {full(tokenbucket.Greedy), call(tokenbucket.Leaky, 1, 1, 1<<32)},
		"converted, refused": {full(tokenbucket.Greedy), call(tokenbucket.Interval, 1, 1, 1<<32)},
	} {
		require.NoError(t, s.call.Validate(), name)
		require.Equal(t, limit.ErrOverflow, s.key.decide(epoch, &s.call), name)
		require.Equal(t, tokenbucket.Keep, s.key.plan.Action, name)
	}
}

// TestDebtBeyondTheLastInstantIsAnError asks for a debt that fits but ends after 2262.
// The call fails.
func TestDebtBeyondTheLastInstantIsAnError(t *testing.T) {
	for _, mode := range []tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Interval, tokenbucket.Leaky} {
		var k key
		c := call(mode, 1, 1, second)
		require.NoError(t, k.decide(limit.MaxInstant-1e9, &c), mode.String())
		require.ErrorIs(t, k.decide(limit.MaxInstant-1e9+1, &c), limit.ErrOverflow, mode.String())
	}
}

// TestRefundOfEverything: the largest possible refund fills the bucket.
func TestRefundOfEverything(t *testing.T) {
	for _, mode := range allModes {
		var k key
		c := with(call(mode, 5, 1, second), warmup(4*second, 3))
		k.do(t, epoch, with(c, quantity(3)))
		d := k.do(t, epoch, with(c, quantity(math.MinInt64)))
		require.Equal(t, limit.Decision{
			Limit: 5, Remaining: min(5, max(1, d.Remaining)), RetryAfter: limit.NoRetry,
		}, d, mode.String())
	}
}

// TestClockBack: a bucket that was stored at a later instant is used as stored, and nothing is
// credited twice.
func TestClockBack(t *testing.T) {
	c := call(tokenbucket.Interval, 5, 1, second)
	var k key
	k.do(t, epoch, with(c, quantity(5)))
	require.Equal(t, limit.Decision{
		Refused: 1, Limit: 5, RetryAfter: 11 * second, ResetAfter: 15 * second,
	}, k.do(t, epoch.Add(-10*time.Second), c))
}

// TestWaitsAndTotalsSaturate tests waits and totals at the end of int64. They neither
// wrap nor panic.
func TestWaitsAndTotalsSaturate(t *testing.T) {
	for _, mode := range allModes {
		for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64} {
			c := with(call(mode, 3, 1, second), warmup(second, 3), quantity(n), wait(tokenbucket.NoLimit))
			if c.Validate() != nil {
				require.Equal(t, tokenbucket.Debt, mode)
				continue
			}
			var k key
			require.NoError(t, k.decide(epoch, &c))
			d := k.plan.Decision
			require.Equal(t, n > 3 && mode != tokenbucket.Debt, !d.Allowed())
			require.LessOrEqual(t, d.Remaining, d.Limit)
			require.GreaterOrEqual(t, d.Remaining, int64(0))
		}
	}
}
