package loadgen_test

import (
	"math"
	"slices"
	"testing"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/stretchr/testify/require"
)

// keySpec parses a choice of keys and fails the test on an error.
func keySpec(t *testing.T, text string, count uint64) loadgen.KeySpec {
	t.Helper()
	k, err := loadgen.ParseKeys(text, count, 0)
	require.NoError(t, err)
	return k
}

func counts(keys []uint64, n int) []float64 {
	c := make([]float64, n)
	for _, k := range keys {
		c[k]++
	}
	return c
}

// chiSquared returns the chi-squared statistic of counts. For n classes its mean is n-1, with a
// standard deviation of about sqrt(2n).
func chiSquared(got, want []float64) float64 {
	sum := 0.0
	for i := range got {
		sum += (got[i] - want[i]) * (got[i] - want[i]) / want[i]
	}
	return sum
}

func TestUniformKeys(t *testing.T) {
	const n, draws = 100, 200_000
	want := slices.Repeat([]float64{draws / n}, n)
	got := counts(keySpec(t, "uniform", n).Sample(7, draws, 0, 1), n)
	require.Less(t, chiSquared(got, want), n+6*math.Sqrt(2*n))
}

func TestZipfKeys(t *testing.T) {
	const n, draws = 50, 400_000
	for text, s := range map[string]float64{"zipf:0.5": 0.5, "zipf:0.99": 0.99, "zipf:1": 1, "zipf:1.01": 1.01, "zipf:2.5": 2.5} {
		total := 0.0
		want := make([]float64, n)
		for i := range want {
			want[i] = math.Pow(float64(i+1), -s)
			total += want[i]
		}
		for i := range want {
			want[i] *= draws / total
		}
		got := counts(keySpec(t, text, n).Sample(3, draws, 0, 1), n)
		require.Less(t, chiSquared(got, want), n+6*math.Sqrt(2*n), text)
	}
}

func TestZipfStaysInRange(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 1 << 40} {
		for _, text := range []string{"zipf:0.01", "zipf:1", "zipf:10"} {
			for _, k := range keySpec(t, text, n).Sample(5, 20_000, 0, 1) {
				require.Less(t, k, n, "%s over %d keys", text, n)
			}
		}
	}
}

func TestHotKeys(t *testing.T) {
	const draws = 200_000
	hot, cold := 0, make([]float64, 90)
	for _, k := range keySpec(t, "hot:0.9/10", 100).Sample(9, draws, 0, 1) {
		if k < 10 {
			hot++
		} else {
			cold[k-10]++
		}
	}
	require.InDelta(t, 0.9*draws, hot, 0.01*draws)
	want := slices.Repeat([]float64{float64(draws-hot) / 90}, 90)
	require.Less(t, chiSquared(cold, want), 90+6*math.Sqrt(180))
}

func TestFloodNeverRepeats(t *testing.T) {
	const flows, each = 7, 1000
	var all []uint64
	for i := range flows {
		all = append(all, keySpec(t, "flood", 1).Sample(1, each, i, flows)...)
	}
	slices.Sort(all)
	for i, k := range all {
		require.EqualValues(t, i, k, "the keys are numbered without gaps")
	}
}

func TestKeysRepeatWithTheirSeed(t *testing.T) {
	for _, text := range []string{"uniform", "zipf:0.99", "hot:0.5/3"} {
		k := keySpec(t, text, 1000)
		first := k.Sample(11, 500, 4, 9)
		require.Equal(t, first, k.Sample(11, 500, 4, 9))
		require.NotEqual(t, first, k.Sample(12, 500, 4, 9), "another seed")
		require.NotEqual(t, first, k.Sample(11, 500, 5, 9), "another connection")
	}
}

func TestParseKeysRefuses(t *testing.T) {
	for _, text := range []string{
		"", "random", "uniform:1", "flood:2", "zipf", "zipf:0", "zipf:-1", "zipf:NaN", "zipf:11", "zipf:x",
		"hot", "hot:0.5", "hot:2/5", "hot:0.5/0", "hot:0.5/100", "hot:0.5/x", "hot:NaN/5",
	} {
		_, err := loadgen.ParseKeys(text, 100, 0)
		require.Error(t, err, text)
	}
	_, err := loadgen.ParseKeys("uniform", 0, 0)
	require.Error(t, err)
}

func TestKeySpecString(t *testing.T) {
	for text, want := range map[string]string{
		"uniform": "uniform over 100 keys", "zipf:0.99": "zipf:0.99 over 100 keys",
		"hot:0.9/10": "hot:0.9/10 of 100 keys", "flood": "flood: every key is new",
	} {
		require.Equal(t, want, keySpec(t, text, 100).String())
	}
}
