package policy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

func TestFactors(t *testing.T) {
	for _, row := range []struct {
		text string
		want int64
	}{
		{"1", 1000},
		{"1.5", 1500},
		{"1.50", 1500},
		{"1.500", 1500},
		{"0.001", 1},
		{"0.01", 10},
		{"999.999", 999_999},
		{"1000", 1_000_000},
		{"1000.000", 1_000_000},
		{"007", 7000},
		{"0999.999", 999_999},
	} {
		got, err := policy.ParseFactor([]byte(row.text))
		require.NoError(t, err, row.text)
		require.Equal(t, row.want, got, row.text)
	}
}

func TestBadFactors(t *testing.T) {
	for _, text := range []string{
		"", ".", ".5", "5.", "0", "0.000", "0.0001", "1.0000", "1000.001", "1001", "9999", "10000", "00001", "-1", "+1", " 1",
		"1 ", "1e3", "1,5", "1..5", "1.5.5", "x", "1x", "1.x", "Inf", "NaN", "9223372036854775808", strings.Repeat("1", 100),
	} {
		_, err := policy.ParseFactor([]byte(text))
		require.ErrorIs(t, err, policy.ErrFactor, "%q", text)
	}
}

// TestAppendFactor: each factor can be parsed back from its text, and the text is as short as that
// of a float.
func TestAppendFactor(t *testing.T) {
	var text []byte
	for n := int64(policy.MinFactor); n <= policy.MaxFactor; n++ {
		text = policy.AppendFactor(text[:0], n)
		got, err := policy.ParseFactor(text)
		if err != nil || got != n || string(text) != strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) {
			require.Fail(t, "another factor", fmt.Sprint(n, " ", string(text), " ", got, " ", err))
		}
	}
}
