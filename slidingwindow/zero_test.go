package slidingwindow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// TestLimitOfZero: a limit of 0 refuses every quantity in every mode and with every kind of charge,
// and does not change what a higher limit has admitted.
func TestLimitOfZero(t *testing.T) {
	const now limit.Instant = 1_700_000_040_000_000_000
	for _, mode := range []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets} {
		call := slidingwindow.Call{Window: time.Minute, Mode: mode, Quantity: 1}
		if mode == slidingwindow.Buckets {
			call.Slots, call.Even = 6, true
		}
		var k key
		denies := func(c slidingwindow.Call, reset time.Duration) {
			t.Helper()
			before := slices.Clone(k.value)
			d, err := k.call(t, now, &c)
			require.NoError(t, err)
			refused := int64(1)
			if c.Charge == slidingwindow.Partial {
				refused = c.Quantity
			}
			require.Equal(t, limit.Decision{Refused: refused, RetryAfter: limit.NoRetry, ResetAfter: reset}, d, "%v", mode)
			require.Equal(t, before, k.value)
		}
		all := func(reset time.Duration) {
			t.Helper()
			for _, quantity := range []int64{1, 5, 1<<63 - 1} {
				c := call
				c.Quantity = quantity
				for _, c.Charge = range []slidingwindow.Charge{slidingwindow.Whole, slidingwindow.Peek, slidingwindow.Partial, slidingwindow.Force} {
					denies(c, reset)
				}
				c.Charge, c.Penalize = slidingwindow.Whole, true
				denies(c, reset)
			}
		}
		all(0)
		require.Equal(t, slidingwindow.None, k.mode, "nothing is kept")

		admits := call
		admits.Limit, admits.Even = 5, false
		d, err := k.call(t, now, &admits)
		require.NoError(t, err)
		require.True(t, d.Allowed())
		all(d.ResetAfter)

		look := call
		look.Quantity = 0
		d, err = k.call(t, now, &look)
		require.NoError(t, err)
		require.Equal(t, int64(1), d.Refused, "more is used than the limit")
		back := call
		back.Quantity = -1
		d, err = k.call(t, now, &back)
		require.NoError(t, err)
		require.Equal(t, limit.Decision{RetryAfter: limit.NoRetry}, d)
		require.Equal(t, slidingwindow.None, k.mode)
	}
}
