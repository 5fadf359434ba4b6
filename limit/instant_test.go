package limit_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

func TestInstantArithmetic(t *testing.T) {
	pairs(func(a, b int64) {
		x, y := big.NewInt(a), big.NewInt(b)
		require.Equal(t, held(new(big.Int).Add(x, y)), int64(limit.Instant(a).Add(time.Duration(b))), "%d + %d", a, b)
		require.Equal(t, held(new(big.Int).Sub(x, y)), int64(limit.Instant(a).Sub(limit.Instant(b))), "%d - %d", a, b)
	})
}

func TestInstantEnds(t *testing.T) {
	require.Equal(t, limit.MaxInstant, limit.MaxInstant.Add(1))
	require.Equal(t, limit.MinInstant, limit.MinInstant.Add(-1))
	require.Equal(t, limit.MaxInstant-1, limit.MaxInstant.Add(-1))
	require.Equal(t, time.Duration(math.MaxInt64), limit.MaxInstant.Sub(limit.MinInstant))
	require.Equal(t, time.Duration(math.MinInt64), limit.MinInstant.Sub(limit.MaxInstant))
}

func TestDecisionAllowed(t *testing.T) {
	require.True(t, limit.Decision{}.Allowed())
	require.False(t, limit.Decision{Refused: 1}.Allowed())
	require.False(t, limit.Decision{Refused: 7}.Allowed())
}
