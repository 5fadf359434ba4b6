package value_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/value"
)

// TestNumbersAreReadAsInC: spaces, hexadecimal numbers and infinity are parsed as by strtod, and
// forms that only Go accepts are refused.
func TestNumbersAreReadAsInC(t *testing.T) {
	for text, want := range map[string]float64{
		"010": 10, " 5\t\n": 5, "-0x10": -16, "0x1p4": 16, "1e2": 100, ".5": 0.5, "3.": 3, "1e400": math.Inf(1), "-inf": math.Inf(-1),
	} {
		got, ok := value.Parse(text)
		require.True(t, ok, text)
		require.InDelta(t, want, got, 0, text)
	}
	for _, text := range []string{"", " ", "x", "1_0", "0b1", "0o7", "0x", "--1", "1 2", "1e"} {
		_, ok := value.Parse(text)
		require.False(t, ok, text)
	}
	got, ok := value.ParseBase("zZ", 36)
	require.True(t, ok)
	require.InDelta(t, 35*36+35, got, 0)
	_, ok = value.ParseBase("9", 8)
	require.False(t, ok)
}

func TestNumbersAreSpelledWithFourteenDigits(t *testing.T) {
	for number, want := range map[float64]string{
		0: "0", -17: "-17", 0.1: "0.1", 1.0 / 3: "0.33333333333333", 99999999999999: "99999999999999", 1e14: "1e+14", 1e100: "1e+100", math.Inf(-1): "-inf",
	} {
		require.Equal(t, want, value.Spell(glua.LNumber(number)))
	}
	require.Equal(t, "-0", value.Spell(glua.LNumber(math.Copysign(0, -1))))
	require.Equal(t, "nan", value.Spell(glua.LNumber(math.NaN())))
}

func TestTruncateIsTheCastOfC(t *testing.T) {
	for number, want := range map[float64]int64{
		1.9: 1, -1.9: -1, 1e300: math.MinInt64, math.Inf(-1): math.MinInt64, 9223372036854774784: 9223372036854774784, 9223372036854775808: math.MinInt64,
	} {
		require.Equal(t, want, value.Truncate(number))
	}
	require.Equal(t, int64(math.MinInt64), value.Truncate(math.NaN()))
}

// TestLengthOfTablesBeyondTheirArray: elements beyond [value.ArrayMax] count, too.
func TestLengthOfTablesBeyondTheirArray(t *testing.T) {
	l := glua.NewState()
	defer l.Close()
	table := l.NewTable()
	require.Zero(t, value.Length(table))
	for i := 1; i <= value.ArrayMax+100; i++ {
		table.RawSet(glua.LNumber(i), glua.LTrue)
	}
	require.Equal(t, value.ArrayMax+100, value.Length(table))
}

func TestSmallNumbersTakeNoMemory(t *testing.T) {
	var kept glua.LValue
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := int64(-1); i < 128; i++ {
			kept = value.Number(i)
		}
		kept = value.FromFloat(17)
	}))
	require.InDelta(t, 17, float64(kept.(glua.LNumber)), 0)
	require.InDelta(t, 1<<40, float64(value.Number(1<<40).(glua.LNumber)), 0)
}
