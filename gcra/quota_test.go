package gcra_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/stretchr/testify/require"
)

func TestNewQuota(t *testing.T) {
	const maxInt, minInt = math.MaxInt64, math.MinInt64
	for _, c := range []struct {
		burst, count, period int64
		limit                int64
		interval             time.Duration
	}{
		{15, 30, 60, 16, 2 * time.Second},
		{0, 1, 1, 1, time.Second},
		{-1, 7, 60, 0, 8_571_428_571},
		{maxInt, 1, 1, maxInt, time.Second},
		{maxInt - 1, 1, 1, maxInt, time.Second},
		{minInt, 1, 1, minInt + 1, time.Second},
		{0, -2, -3, 1, 1500 * time.Millisecond},
		{0, -2, 3, 1, 1500 * time.Millisecond},
		{0, 2, -3, 1, 1500 * time.Millisecond},
		{0, 1_000_000_000, 1, 1, 1},
		{0, 1, maxInt, 1, math.MaxInt64},
		{0, -1, minInt, 1, math.MaxInt64},
		{0, minInt, minInt, 1, time.Second},
		{0, maxInt, maxInt, 1, time.Second},
		// The interval of redis-cell comes from a double beyond 104 days; the
		// integer quotient would be 10512000000000000.
		{0, 1, 3_153_600_000, 1, 3_153_600_000 * time.Second},
		{0, 3, 31_536_001, 1, 10_512_000_333_333_334},
	} {
		q, err := gcra.NewQuota(c.burst, c.count, c.period)
		require.NoError(t, err)
		require.Equal(t, c.limit, q.Limit(), "%+v", c)
		require.Equal(t, c.interval, q.Interval(), "%+v", c)
	}
}

func TestNewQuotaPer(t *testing.T) {
	q, err := gcra.NewQuotaPer(9, 4, 10, time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, 2500*time.Microsecond, q.Interval())
}

func TestZeroRates(t *testing.T) {
	for _, c := range [][2]int64{
		{0, 60},
		{30, 0},
		{0, 0},
		{1_000_000_001, 1},
		{2_000_000_001, 2},
		{math.MaxInt64, 1},
		{math.MinInt64, 1},
		{math.MinInt64, -1},
		{-1_000_000_001, 1},
		{math.MaxInt64, 60},
	} {
		_, err := gcra.NewQuota(15, c[0], c[1])
		require.ErrorIs(t, err, gcra.ErrZeroRate, "count %d, period %d", c[0], c[1])
	}
}
