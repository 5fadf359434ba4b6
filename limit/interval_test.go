package limit_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// slowInterval is the definition of an interval in arbitrary precision: the exact product is
// converted to a double, and the quotient of two doubles is truncated.
func slowInterval(period int64, unit time.Duration, count int64) time.Duration {
	product := new(big.Int).Mul(big.NewInt(period), big.NewInt(int64(unit)))
	a, _ := new(big.Float).SetInt(product.Abs(product)).Float64()
	b, _ := new(big.Float).SetInt(new(big.Int).Abs(big.NewInt(count))).Float64()
	whole, _ := big.NewFloat(a / b).Int(nil)
	return time.Duration(held(whole))
}

func TestInterval(t *testing.T) {
	pairs(func(period, count int64) {
		if count == 0 {
			return
		}
		for _, unit := range []time.Duration{time.Millisecond, time.Second} {
			require.Equal(t, slowInterval(period, unit, count), limit.Interval(period, unit, count), "%d %v / %d", period, unit, count)
		}
	})
}

// TestIntervalIsTheQuotient: the floats make no difference below 104 days.
func TestIntervalIsTheQuotient(t *testing.T) {
	pairs(func(period, count int64) {
		period %= (1<<53 - 1) / int64(time.Second)
		if period <= 0 || count <= 0 {
			return
		}
		require.Equal(t, time.Duration(period*int64(time.Second)/count), limit.Interval(period, time.Second, count), "%d / %d", period, count)
	})
}

func TestIntervalRows(t *testing.T) {
	for _, c := range []struct {
		period int64
		unit   time.Duration
		count  int64
		want   time.Duration
	}{
		{60, time.Second, 30, 2 * time.Second},
		{60, time.Second, 7, 8_571_428_571},
		{60, time.Millisecond, 7, 8_571_428},
		{1, time.Second, 1_000_000_000, 1},
		{1, time.Second, 1_000_000_001, 0},
		{0, time.Second, 1, 0},
		{-60, time.Second, 30, 2 * time.Second},
		{math.MaxInt64, time.Second, 1, math.MaxInt64},
		{math.MinInt64, time.Second, math.MinInt64, time.Second},
		// The product needs more than 64 bits and lies between two doubles: rounding
		// the period first would give ..992000.
		{9_007_199_254_740_993, time.Second, 1_000_000, 9_007_199_254_740_993_024},
	} {
		require.Equal(t, c.want, limit.Interval(c.period, c.unit, c.count), "%+v", c)
	}
}
