package longdouble

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Redis 7.0.15 answers on x86.
func TestLongDoubleSums(t *testing.T) {
	for _, row := range [][3]string{
		{"0.1", "0.2", "0.3"},
		{"0.3", "1e-17", "0.30000000000000001"},
		{"3.0e3", "1.5e0", "3001.5"},
		{"5", "-5.0", "0"},
		{"-0", "-0.0", "0"},
		{"0", "0x10", "16"},
		{"0", "-0X1.8p3", "-12"},
		{"0", "0x.8", "0.5"},
		{"5", "12345678901234567890.123456789", "12345678901234567895"},
		{"1e20", "0.3", "100000000000000000000"},
		{"0", "1e-4940", "0"},
		{"0", "0e99999999999", "0"},
		{"18446744073709551615", "1", "18446744073709551616"},
		{"18446744073709551616", "1", "18446744073709551616"}, // 65 bits do not fit
		{".5", "5.", "5.5"},
	} {
		got, err := AddTexts([]byte(row[0]), []byte(row[1]))
		require.NoError(t, err, row)
		require.Equal(t, row[2], string(got), row)
	}
}

func TestLongDoublesThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "x", " 1", "1 ", "\x001", "1\x00", "+", "-", "--1", ".", "1..2", "..5", "1e", "1e+", "1e5.5", "e5", "0x", "0x1p", "0xg", "0x.p1",
		"nan", "-nan", "nan(1)", "infi", "1_000", "0b1", "0o7", "1e5000", "-1e5000", "1e99999999999", "1e-4960", "1e-99999999999",
		"0x1p16384", "0x1p-16446", "0x1p-99999999999", strings.Repeat("1", maxText),
	} {
		_, ok := Parse([]byte(text))
		require.False(t, ok, "%.40q", text)
	}
	for _, text := range []string{"inf", "-Infinity", "+INF"} {
		x, ok := Parse([]byte(text))
		require.True(t, ok)
		require.True(t, x.IsInf())
		_, err := AddTexts([]byte("1"), []byte(text))
		require.ErrorIs(t, err, ErrNotFinite)
	}
	_, err := AddTexts([]byte("1e4932"), []byte("1e4932"))
	require.ErrorIs(t, err, ErrNotFinite)
}

// FuzzLongDouble: any bytes are a number or none, quickly, and a number of few
// digits is what exact arithmetic makes of it.
func FuzzLongDouble(f *testing.F) {
	for _, seed := range []string{"0.1", "-1e400", "0x1.8p-3", "1e-4951", "inf", strings.Repeat("9", 100) + "e-50"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, ok := Parse(b)
		if !ok || x.IsInf() {
			return
		}
		require.LessOrEqual(t, x.MinPrec(), uint(mantissaBits))
		again, ok := Parse([]byte(x.Text('g', 30)))
		require.True(t, ok)
		require.Zero(t, x.Cmp(again), "%q", b)
		if exact, isDecimal := new(big.Rat).SetString(string(b)); isDecimal && len(b) < 30 {
			nearest := new(big.Float).SetPrec(mantissaBits).SetRat(exact)
			require.Zero(t, x.Cmp(nearest), "%q", b)
		}
		require.NotContains(t, string(Append(nil, x)), "e")
	})
}
