package arg

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

func TestParseTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0.0": 0, "-0": 0, "+0": 0, ".0": 0, "0.": 0, "-0.000": 0, "0e5": 0,
		"1": time.Second, "+1": time.Second, "01": time.Second, "1.": time.Second, "1e0": time.Second,
		"0.07":        70 * time.Millisecond, // as a double it would be a nanosecond too long
		"1.1":         1100 * time.Millisecond,
		".5":          500 * time.Millisecond,
		"1e-3":        time.Millisecond,
		"0.000000001": 1, "0.0000000001": 1, "0.0000000010": 1, "0.00000000101": 2, "0.0000000009999": 1, "1e-30": 1, "1e-400": 1,
		"9223372036.854775807": math.MaxInt64,
		"9223372036":           9223372036 * time.Second,
		"999999999.9999999991": 999999999*time.Second + time.Second,
	} {
		got, err := Timeout([]byte(text), time.Second)
		require.Empty(t, err, text)
		require.Equal(t, want, got, text)
	}
	got, err := Timeout([]byte("1.0000011"), time.Millisecond)
	require.Empty(t, err)
	require.Equal(t, time.Millisecond+2, got)

	for text, want := range map[string]resp.Error{
		"": resp.ErrTimeoutNotFloat, " 1": resp.ErrTimeoutNotFloat, "1 ": resp.ErrTimeoutNotFloat, "x": resp.ErrTimeoutNotFloat,
		"-": resp.ErrTimeoutNotFloat, ".": resp.ErrTimeoutNotFloat, "1.2.3": resp.ErrTimeoutNotFloat, "1_0": resp.ErrTimeoutNotFloat,
		"0x1": resp.ErrTimeoutNotFloat, "inf": resp.ErrTimeoutNotFloat, "nan": resp.ErrTimeoutNotFloat, "--1": resp.ErrTimeoutNotFloat,
		"e": resp.ErrTimeoutNotFloat, "1e": resp.ErrTimeoutNotFloat, "1e999": resp.ErrTimeoutNotFloat, "0x1e3": resp.ErrTimeoutNotFloat,
		"1.x": resp.ErrTimeoutNotFloat, "9223372036.854775808": resp.ErrTimeoutNotFloat, "9223372036.8547758071": resp.ErrTimeoutNotFloat,
		"9223372037": resp.ErrTimeoutNotFloat, "12345678901234567890123": resp.ErrTimeoutNotFloat, "1e10": resp.ErrTimeoutNotFloat,
		"-1": resp.ErrTimeoutNegative, "-0.1": resp.ErrTimeoutNegative, "-1e-9": resp.ErrTimeoutNegative, "-0.0000000001": resp.ErrTimeoutNegative,
	} {
		_, err := Timeout([]byte(text), time.Second)
		require.Equal(t, want, err, text)
	}
}
