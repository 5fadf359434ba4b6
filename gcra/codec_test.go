package gcra_test

import (
	"math"
	"testing"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

func TestState(t *testing.T) {
	require.Equal(t, []byte{9, 0x00, 0x94, 0x35, 0x77, 0, 0, 0, 0}, gcra.AppendState([]byte{9}, 2_000_000_000))
	value := make([]byte, gcra.StateSize)
	for _, tat := range []limit.Instant{limit.MinInstant, -1, 0, 1, t0, limit.MaxInstant} {
		require.Equal(t, tat, gcra.State(gcra.AppendState(nil, tat)))
		gcra.PutState(value, tat)
		require.Equal(t, tat, gcra.State(value))
		require.NoError(t, gcra.Check(value))
	}
}

func TestCheck(t *testing.T) {
	for n := range 20 {
		require.Equal(t, n == gcra.StateSize, gcra.Check(make([]byte, n)) == nil, "%d bytes", n)
	}
}

func TestDecimal(t *testing.T) {
	require.Equal(t, "x1700000000000000000", string(gcra.AppendDecimal([]byte("x"), t0)))
	for _, c := range []struct {
		text string
		want limit.Instant
	}{
		{"0", 0},
		{"-0", 0},
		{"+0", 0},
		{"1", 1},
		{"-1", -1},
		{"+15", 15},
		{"0015", 15},
		{"-0015", -15},
		{"1700000000000000000", t0},
		{"9223372036854775807", math.MaxInt64},
		{"-9223372036854775808", math.MinInt64},
		{"9007199254740993", 1<<53 + 1},
		{"00000000000000000000000000000000000000000001", 1},
	} {
		got, err := gcra.ParseDecimal([]byte(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	for _, text := range []string{
		"", "+", "-", " 1", "1 ", "1.5", "1e3", "0x10", "1_000", "abc", "--1", "+-1", "１", "1\x00",
		"9223372036854775808", "-9223372036854775809", "10923372036854775807", "99999999999999999999",
	} {
		_, err := gcra.ParseDecimal([]byte(text))
		require.ErrorIs(t, err, limit.ErrNotInteger, "%q", text)
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"", "0", "-1", "+007", "9223372036854775808", "1700000002000000000", "1e3", " 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		tat, err := gcra.ParseDecimal(s)
		if err != nil {
			require.ErrorIs(t, err, limit.ErrNotInteger)
			return
		}
		again, err := gcra.ParseDecimal(gcra.AppendDecimal(nil, tat))
		require.NoError(t, err)
		require.Equal(t, tat, again)
	})
}
