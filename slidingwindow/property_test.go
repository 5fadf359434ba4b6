package slidingwindow_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawCall draws a limiter that is small enough for edges to be met by chance.
func drawCall(t *rapid.T) slidingwindow.Call {
	c := slidingwindow.Call{
		Mode:   slidingwindow.Mode(rapid.IntRange(1, 4).Draw(t, "mode")),
		Limit:  rapid.Int64Range(1, 20).Draw(t, "limit"),
		Window: time.Duration(rapid.Int64Range(1, 100).Draw(t, "window")),
	}
	if c.Mode == slidingwindow.Buckets {
		c.Slots = rapid.IntRange(2, 12).Draw(t, "slots")
		c.Even = rapid.Bool().Draw(t, "even")
	}
	if c.Mode != slidingwindow.Log {
		c.First = rapid.Bool().Draw(t, "first")
		c.Phase = time.Duration(rapid.Int64Range(0, int64(c.Window)-1).Draw(t, "phase"))
	}
	return c
}

// live makes some calls and returns the key, the instant and the next call.
func live(t *rapid.T, tb testing.TB) (*key, limit.Instant, slidingwindow.Call) {
	c := drawCall(t)
	k, now := &key{}, limit.Instant(rapid.Int64Range(0, 1000).Draw(t, "start"))
	for range rapid.IntRange(0, 12).Draw(t, "calls") {
		now += limit.Instant(rapid.Int64Range(0, int64(c.Window)).Draw(t, "step"))
		c.Quantity = rapid.Int64Range(-5, c.Limit+2).Draw(t, "quantity")
		c.Charge = slidingwindow.Charge(rapid.IntRange(0, 3).Draw(t, "charge"))
		_, err := k.call(tb, now, &c)
		require.NoError(t, err)
	}
	c.Charge = slidingwindow.Whole
	c.Quantity = rapid.Int64Range(1, c.Limit+1).Draw(t, "last quantity")
	return k, now, c
}

// TestPeekAgreesWithTheCall tests that a peek replies what the call would reply, and
// changes nothing.
func TestPeekAgreesWithTheCall(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, now, c := live(rt, t)
		c.Charge = slidingwindow.Peek
		peek, err := k.call(t, now, &c)
		require.NoError(rt, err)
		require.Equal(rt, slidingwindow.Keep, k.plan.Action)
		c.Charge = slidingwindow.Whole
		call, err := k.call(t, now, &c)
		require.NoError(rt, err)
		require.Equal(rt, peek.Refused, call.Refused)
		require.Equal(rt, peek.RetryAfter, call.RetryAfter)
		if !call.Allowed() {
			require.Equal(rt, peek, call)
		}
	})
}

// TestRetryIsTheFirstInstant: the call is refused one nanosecond before its retry
// time and passes at it.
func TestRetryIsTheFirstInstant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, now, c := live(rt, t)
		d, err := k.call(t, now, &c)
		require.NoError(rt, err)
		if d.Allowed() || d.RetryAfter == limit.NoRetry {
			return
		}
		c.Charge = slidingwindow.Peek
		before, err := k.call(t, now.Add(d.RetryAfter-1), &c)
		require.NoError(rt, err)
		require.False(rt, before.Allowed())
		c.Charge = slidingwindow.Whole
		after, err := k.call(t, now.Add(d.RetryAfter), &c)
		require.NoError(rt, err)
		require.True(rt, after.Allowed())
	})
}

// TestRefundRestoresTheWindow refunds at the same instant what a call took. The window is as
// before.
func TestRefundRestoresTheWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, now, c := live(rt, t)
		look := c
		look.Quantity = 0
		before, err := k.call(t, now, &look)
		require.NoError(rt, err)
		d, err := k.call(t, now, &c)
		require.NoError(rt, err)
		if !d.Allowed() {
			return
		}
		c.Quantity = -c.Quantity
		after, err := k.call(t, now, &c)
		require.NoError(rt, err)
		before.Refused, before.RetryAfter = 0, limit.NoRetry
		require.Equal(rt, before, after)
	})
}

// TestLogAdmitsTheLimit: in every half-open span as long as the window, LOG admits
// at most the limit.
func TestLogAdmitsTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := slidingwindow.Call{
			Mode:   slidingwindow.Log,
			Limit:  rapid.Int64Range(1, 10).Draw(rt, "limit"),
			Window: time.Duration(rapid.Int64Range(1, 50).Draw(rt, "window")),
		}
		type grant struct {
			at limit.Instant
			n  int64
		}
		var k key
		var grants []grant
		now := limit.Instant(0)
		for range rapid.IntRange(1, 60).Draw(rt, "calls") {
			now += limit.Instant(rapid.Int64Range(0, int64(c.Window)).Draw(rt, "step"))
			c.Quantity = rapid.Int64Range(1, c.Limit+1).Draw(rt, "quantity")
			c.Charge, c.Penalize = slidingwindow.Whole, rapid.Bool().Draw(rt, "penalize")
			if rapid.Bool().Draw(rt, "partial") {
				c.Charge, c.Penalize = slidingwindow.Partial, false
			}
			d, err := k.call(t, now, &c)
			require.NoError(rt, err)
			admitted := c.Quantity - d.Refused
			if c.Charge == slidingwindow.Whole && !d.Allowed() {
				admitted = 0
			}
			grants = append(grants, grant{now, admitted})
			sum := int64(0)
			for _, g := range grants {
				if g.at+limit.Instant(c.Window) > now {
					sum += g.n
				}
			}
			require.LessOrEqual(rt, sum, c.Limit)
		}
	})
}

// TestPenaltyEndsOneUnitBeyondTheLimit: refusals alone never push a window further than
// one unit beyond the limit.
func TestPenaltyEndsOneUnitBeyondTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt)
		c.Even, c.Penalize = false, true
		var k key
		now := limit.Instant(0)
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			now += limit.Instant(rapid.Int64Range(0, int64(c.Window)).Draw(rt, "step"))
			c.Quantity = rapid.Int64Range(1, c.Limit+2).Draw(rt, "quantity")
			_, err := k.call(t, now, &c)
			require.NoError(rt, err)
			look := c
			look.Penalize, look.Quantity, look.Limit = false, 0, c.Limit+1
			if c.Mode == slidingwindow.Counter {
				look.Limit = 2*c.Limit + 2 // the previous window contributes a share
			}
			d, err := k.call(t, now, &look)
			require.NoError(rt, err)
			require.True(rt, d.Allowed(), "more than one unit beyond the limit")
		}
	})
}
