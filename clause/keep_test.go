package clause

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// checkKeep checks what every accepted KEEP obeys.
func checkKeep(t *testing.T, k Keep) {
	t.Helper()
	require.GreaterOrEqual(t, k.Units, int64(0))
	require.GreaterOrEqual(t, k.Percent, int64(0))
	require.LessOrEqual(t, k.Percent, int64(100))
	require.True(t, k.Units == 0 || k.Percent == 0)
}

func TestKeep(t *testing.T) {
	for text, want := range map[string]Keep{
		"1": {Units: 1}, "9223372036854775807": {Units: math.MaxInt64}, "1%": {Percent: 1}, "100%": {Percent: 100},
	} {
		k, err := ParseKeep([]byte(text))
		require.Empty(t, err, text)
		require.Equal(t, want, k, text)
	}
	for text, want := range map[string]resp.Error{
		"": resp.ErrNotInteger, "%": resp.ErrNotInteger, "1.5%": resp.ErrNotInteger, "30 %": resp.ErrNotInteger, "5%%": resp.ErrNotInteger,
		"0": resp.ErrNotPositive, "0%": resp.ErrNotPositive, "-3": resp.ErrNotPositive, "101%": resp.ErrNotPositive,
		"9223372036854775808": resp.ErrNotInteger,
	} {
		_, err := ParseKeep([]byte(text))
		require.Equal(t, resp.Argument(want, "KEEP", []byte(text), mustKeep), err, text)
	}
}

func TestKeptUnitsAndRank(t *testing.T) {
	for _, c := range []struct {
		keep              Keep
		most, units, rank int64
	}{
		{Keep{}, 10, 0, 0},
		{Keep{Units: 3}, 10, 3, 300_000},
		{Keep{Units: 3}, 0, 3, 3_000_000},
		{Keep{Units: math.MaxInt64}, 1, math.MaxInt64, math.MaxInt64},
		{Keep{Percent: 30}, 10, 3, 300_000},
		{Keep{Percent: 30}, 11, 4, 300_000},
		{Keep{Percent: 1}, 1, 1, 10_000},
		{Keep{Percent: 100}, math.MaxInt64, math.MaxInt64, 1_000_000},
		{Keep{Percent: 50}, 0, 0, 500_000},
		{Keep{Percent: 50}, -1, 0, 500_000},
	} {
		require.Equal(t, c.units, c.keep.Of(c.most), "%+v", c)
		require.Equal(t, c.rank, c.keep.Rank(c.most), "%+v", c)
	}
}
