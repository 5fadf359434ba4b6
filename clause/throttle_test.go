package clause

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/resp"
)

// throttleCall is a parsed CL.THROTTLE.
type throttleCall struct {
	quota    gcra.Quota
	quantity int64
}

func TestThrottle(t *testing.T) {
	quota := func(burst, count, period int64) gcra.Quota {
		q, err := gcra.NewQuota(burst, count, period)
		require.NoError(t, err)
		return q
	}
	for _, c := range []struct {
		args string
		want throttleCall
	}{
		{"k 15 30 60", throttleCall{quota(15, 30, 60), 1}},
		{"k 15 30 60 1", throttleCall{quota(15, 30, 60), 1}},
		{"k 15 30 60 0", throttleCall{quota(15, 30, 60), 0}},
		{"k 15 30 60 -0", throttleCall{quota(15, 30, 60), 0}},
		{"k 15 30 60 -3", throttleCall{quota(15, 30, 60), -3}},
		{"k +15 +30 +60 +1", throttleCall{quota(15, 30, 60), 1}},
		{"k 015 030 060 007", throttleCall{quota(15, 30, 60), 7}},
		{"k -1 -30 -60", throttleCall{quota(-1, -30, -60), 1}},
		{"k -1 -30 60", throttleCall{quota(-1, -30, 60), 1}},
		{"k 9007199254740993 1 9007199254740991 9007199254740993", throttleCall{quota(1<<53+1, 1, 1<<53-1), 1<<53 + 1}},
		{"k 9223372036854775807 9223372036854775807 9223372036854775807 9223372036854775807", throttleCall{quota(math.MaxInt64, math.MaxInt64, math.MaxInt64), math.MaxInt64}},
		{"k -9223372036854775808 -9223372036854775808 -9223372036854775808 -9223372036854775808", throttleCall{quota(math.MinInt64, math.MinInt64, math.MinInt64), math.MinInt64}},
	} {
		var got throttleCall
		require.Empty(t, Throttle(words(c.args), &got.quota, &got.quantity), c.args)
		require.Equal(t, c.want, got, c.args)
	}
}

// TestThrottleOrder: the number of arguments is checked first, then the integers from left to
// right, then the rate.
func TestThrottleOrder(t *testing.T) {
	notInteger := func(x string) resp.Error { return resp.CellNotIntegerPrefix + resp.Error(x) }
	for args, want := range map[string]resp.Error{
		"":                  resp.ErrCellUsage,
		"k":                 resp.ErrCellUsage,
		"k x 30":            resp.ErrCellUsage,
		"k 15 30 60 1 1":    resp.ErrCellUsage,
		"k x y z w v":       resp.ErrCellUsage,
		"k a b c d":         notInteger("a"),
		"k 15 b c d":        notInteger("b"),
		"k 15 0 c d":        notInteger("c"),
		"k 15 0 0 d":        notInteger("d"),
		"k 15 0 60":         resp.ErrCellRate,
		"k 15 30 0":         resp.ErrCellRate,
		"k 15 -0 60 1":      resp.ErrCellRate,
		"k 15 1000000001 1": resp.ErrCellRate,
	} {
		var c throttleCall
		require.Equal(t, want, Throttle(words(args), &c.quota, &c.quantity), args)
		require.Zero(t, c, "%q leaves the call alone", args)
	}
}

// TestThrottleTexts: the bytes of the error for every kind of invalid integer, in every position.
func TestThrottleTexts(t *testing.T) {
	for arg, shown := range map[string]string{
		"": "", "+": "+", "-": "-", "--1": "--1", "+-1": "+-1", " 1": " 1", "1 ": "1 ", "1\t": "1\t",
		"1.5": "1.5", "1e3": "1e3", "0x10": "0x10", "1_000": "1_000", "abc": "abc", "１": "１",
		"9223372036854775808": "9223372036854775808", "-9223372036854775809": "-9223372036854775809",
		"18446744073709551617": "18446744073709551617", "99999999999999999999": "99999999999999999999",
		"1\n": "1", "1\r\n": "1", "\r\n": "", "a\r\nb": "a  b", "\na": " a", "a\n\r\n": "a",
		"a\x00b": "a", "\x00": "", "a\n\x00b": "a", "\xff\xfe": "\xff\xfe",
	} {
		for position := 1; position <= 4; position++ {
			args := splitWords("k", "15", "30", "60", "1")
			args[position] = []byte(arg)
			var c throttleCall
			want := resp.Error("Cell error: Store error: Couldn't parse as integer: " + shown)
			require.Equal(t, want, Throttle(args, &c.quota, &c.quantity), "%q", arg)
		}
	}
}

func TestThrottleClause(t *testing.T) {
	for line, want := range map[string]throttleCall{
		"15 30 60":    {quantity: 1},
		"15 30 60 1":  {quantity: 1},
		"15 30 60 0":  {quantity: 0},
		"15 30 60 -3": {quantity: -3},
	} {
		for _, unit := range []time.Duration{time.Second, time.Millisecond} {
			var err error
			want.quota, err = gcra.NewQuotaPer(15, 30, 60, unit)
			require.NoError(t, err)
			var got throttleCall
			require.Empty(t, ThrottleClause(words("CL "+line), unit, &got.quota, &got.quantity), line)
			require.Equal(t, want, got, line)
		}
	}
	for line, want := range map[string]resp.Error{
		"":                  near("CL"),
		"15 30":             near("CL"),
		"15 30 60 1 1":      near("1"),
		"+15 30 60":         resp.ErrNotInteger,
		"15 030 60":         resp.ErrNotInteger,
		"15 30 1e3":         resp.ErrNotInteger,
		"15 30 60 x":        resp.ErrNotInteger,
		"15 0 60":           resp.ErrNotPositive,
		"15 30 -60":         resp.ErrNotPositive,
		"15 -30 -60":        resp.ErrNotPositive,
		"15 1000000001 1":   resp.ErrRateTooHigh,
		"15 1000000001 1 x": resp.ErrNotInteger,
	} {
		var got throttleCall
		require.Equal(t, want, resp.Bare(ThrottleClause(words("CL "+line), time.Second, &got.quota, &got.quantity)), line)
		require.Zero(t, got, line)
	}
	var c throttleCall
	require.Empty(t, ThrottleClause(splitWords("CL", "-1", "30", "60"), time.Second, &c.quota, &c.quantity), "a negative max burst limits everything")
	require.Zero(t, c.quota.Limit())
}

func TestThrottleAllocatesNothing(t *testing.T) {
	args := splitWords("k", "15", "30", "60", "1")
	var c throttleCall
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = Throttle(args, &c.quota, &c.quantity) }))
}

// FuzzThrottle: integers have the values that strconv returns, an error names the first invalid
// one, and no error text can end a reply early.
func FuzzThrottle(f *testing.F) {
	f.Add([]byte("15"), []byte("30"), []byte("60"), []byte("1"))
	f.Add([]byte("+015"), []byte("-30"), []byte("9223372036854775808"), []byte(""))
	f.Add([]byte("0"), []byte("0"), []byte("1e3"), []byte("a\r\n+OK\r\n"))
	f.Add([]byte("-9223372036854775808"), []byte("1\x00"), []byte(" 1"), []byte("\xff"))
	f.Fuzz(func(t *testing.T, burst, count, period, quantity []byte) {
		args := [][]byte{[]byte("k"), burst, count, period, quantity}
		var c throttleCall
		got := Throttle(args, &c.quota, &c.quantity)
		require.NotContains(t, string(got), "\r")
		require.NotContains(t, string(got), "\n")
		var n [4]int64
		for i, arg := range args[1:] {
			var err error
			if n[i], err = strconv.ParseInt(string(arg), 10, 64); err != nil {
				require.True(t, strings.HasPrefix(string(got), resp.CellNotIntegerPrefix))
				return
			}
		}
		q, err := gcra.NewQuota(n[0], n[1], n[2])
		if err != nil {
			require.Equal(t, resp.ErrCellRate, got)
			return
		}
		require.Empty(t, got)
		require.Equal(t, throttleCall{q, n[3]}, c)
	})
}
