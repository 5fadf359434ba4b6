package sortedsets

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/resp"
)

func TestParseScore(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "1": 1, "-1": -1, "+1": 1, "01": 1, ".5": 0.5, "5.": 5, "1e3": 1000, "999999999999999": 999999999999999,
		"9223372036854775807": 1 << 63, "9223372036854775808": 1 << 63, "-9223372036854775808": -1 << 63, "99999999999999999999": 1e20,
		"inf": math.Inf(1), "+Inf": math.Inf(1), "-INFINITY": math.Inf(-1), "0x10": 16, "-0X1.8p1": -3, "0x.8": 0.5,
		"1e-320": 1e-320, "0e999999": 0, "0x0p-99999": 0, "1.7976931348623157e308": math.MaxFloat64,
	} {
		got, ok := arg.Score([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), text)
	}
	for _, text := range []string{
		"", " 1", "1 ", "x", "nan", "-NaN", "nan(1)", "1_000", "0x", "0x1p", "1e", "1e+", ".", "--1", "1e400", "-1e400",
		"1e-400", "0x1p-2000", "0x1p2000", "1\x00", "1.5.5", "0b1",
	} {
		_, ok := arg.Score([]byte(text))
		require.False(t, ok, text)
	}
}

// FuzzParseSortedSet: each accepted call can be executed, and the text of a score reads back as
// the same score.
func FuzzParseSortedSet(f *testing.F) {
	for _, line := range []string{
		"NX CH 1 a", "GT 1.5 a inf b", "INCR -inf a", "0x1.8p3 a", "(1 +inf BYSCORE LIMIT 1 2 WITHSCORES", "[a (b BYLEX REV", "0 -1 REV WITHSCORES",
		"-9223372036854775808 9223372036854775807 REV", "+ - BYLEX LIMIT 9223372036854775807 9223372036854775807", "nan 1 BYSCORE",
	} {
		f.Add([]byte(line))
	}
	var z collection.SortedSet
	for i := range 100 {
		_, err := z.Set([]byte{byte(i)}, float64(i/2))
		require.NoError(f, err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		if call, fault := parseZadd(args); fault == "" {
			for i := 0; i < len(call.pairs); i += 2 {
				score, ok := arg.Score(call.pairs[i])
				require.True(t, ok)
				again, ok := arg.Score(resp.AppendDouble(nil, score))
				require.True(t, ok)
				require.Equal(t, math.Float64bits(score), math.Float64bits(again))
			}
		}
		var call rangeCall
		if len(args) < 2 || call.parse(args[:2], args[2:]) != "" {
			return
		}
		from, to := call.window.ranks(&z, call.by, call.down, call.most(z.Len()))
		if call.by != byRank {
			from, to = call.limit(from, to)
		}
		require.LessOrEqual(t, 0, from)
		require.LessOrEqual(t, from, to)
		require.LessOrEqual(t, to, z.Len())
	})
}
