package limit_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

func TestRoundingUp(t *testing.T) {
	for _, c := range []struct {
		d               time.Duration
		seconds, millis int64
	}{
		{limit.NoRetry, -1, -1},
		{math.MinInt64, -1, -1},
		{0, 0, 0},
		{1, 1, 1},
		{time.Millisecond - 1, 1, 1},
		{time.Millisecond, 1, 1},
		{time.Millisecond + 1, 1, 2},
		{time.Second - 1, 1, 1000},
		{time.Second, 1, 1000},
		{time.Second + 1, 2, 1001},
		{math.MaxInt64, 9_223_372_037, 9_223_372_036_855},
	} {
		require.Equal(t, c.seconds, limit.SecondsUp(c.d), "%d", c.d)
		require.Equal(t, c.millis, limit.MillisUp(c.d), "%d", c.d)
	}
}

// TestCellSeconds: less than a millisecond is dropped, and the rest is rounded up. However large
// the number, no fraction is lost in a float.
func TestCellSeconds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int64
	}{
		{limit.NoRetry, -1},
		{math.MinInt64, -1},
		{0, 0},
		{999_999, 0},
		{time.Millisecond, 1},
		{time.Second - 1, 1},
		{time.Second, 1},
		{time.Second + 500*time.Microsecond, 1},
		{time.Second + time.Millisecond - 1, 1},
		{time.Second + time.Millisecond, 2},
		{2*time.Second - 1, 2},
		{(1<<24)*time.Second + 999_999, 1 << 24},
		{(1<<24)*time.Second + 999_999_999, 1<<24 + 1},
		{math.MaxInt64, 9_223_372_037},
	} {
		require.Equal(t, c.want, limit.CellSeconds(c.d), "%d", c.d)
	}
}
