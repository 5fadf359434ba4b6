package blocking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// TestParsePopTimeout has the results of redis-server 7.0.15 and of the source of 7.2.
func TestParsePopTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "-0": 0, "1.5": 1500 * time.Millisecond, "1e-9": 1, "1e-400": 1, ".1": 100 * time.Millisecond,
		"-0.0001": 0, "-1e-400": 0, "9223372036854000": 0, "1e15": 0,
		"0x10": 16 * time.Second, "0X1P3": 8 * time.Second, "0x.8": 500 * time.Millisecond, "-0x0": 0,
	} {
		got, err := parsePopTimeout([]byte(text))
		require.Empty(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]resp.Error{
		"": resp.ErrTimeoutNotFloat, " 1": resp.ErrTimeoutNotFloat, "1 ": resp.ErrTimeoutNotFloat, "x": resp.ErrTimeoutNotFloat,
		"1_0": resp.ErrTimeoutNotFloat, "0x_1": resp.ErrTimeoutNotFloat, "0x1_0p1": resp.ErrTimeoutNotFloat, "0x": resp.ErrTimeoutNotFloat,
		"nan": resp.ErrTimeoutNotFloat, "1e": resp.ErrTimeoutNotFloat, "1\x00": resp.ErrTimeoutNotFloat,
		"-1": resp.ErrTimeoutNegative, "-0.001": resp.ErrTimeoutNegative, "-inf": resp.ErrTimeoutNegative, "-1e400": resp.ErrTimeoutNegative, "-0x1": resp.ErrTimeoutNegative,
		"inf": errTimeoutRange, "1e400": errTimeoutRange, "9223372036854775": errTimeoutRange, "9223372036854776": errTimeoutRange, "1e18": errTimeoutRange,
	} {
		got, err := parsePopTimeout([]byte(text))
		require.Equal(t, want, err, text)
		require.Zero(t, got)
	}
}
