package limit_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// edges are the numbers at which int64 arithmetic is most likely to be wrong.
var edges = []int64{
	math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 2, -1<<53 - 1, -1 << 53, -1<<32 - 1, -1 << 32,
	-1_000_000_007, -3, -2, -1, 0, 1, 2, 3, 1_000_000_007, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1,
	math.MaxInt64 / 2, math.MaxInt64/2 + 1, math.MaxInt64 - 1, math.MaxInt64,
}

// pairs calls f with every pair of edges and with random pairs of every size.
func pairs(f func(a, b int64)) {
	for _, a := range edges {
		for _, b := range edges {
			f(a, b)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		f(int64(r.Uint64())>>r.IntN(64), int64(r.Uint64())>>r.IntN(64))
	}
}

// held returns x as an int64, saturated at the ends of the range.
func held(x *big.Int) int64 {
	switch {
	case x.IsInt64():
		return x.Int64()
	case x.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func TestSaturatingArithmetic(t *testing.T) {
	pairs(func(a, b int64) {
		x, y := big.NewInt(a), big.NewInt(b)
		require.Equal(t, held(new(big.Int).Add(x, y)), limit.SatAdd(a, b), "%d + %d", a, b)
		require.Equal(t, held(new(big.Int).Sub(x, y)), limit.SatSub(a, b), "%d - %d", a, b)
		require.Equal(t, held(new(big.Int).Mul(x, y)), limit.SatMul(a, b), "%d * %d", a, b)
	})
}

func TestCeilDiv(t *testing.T) {
	pairs(func(a, b int64) {
		if a < 0 || b <= 0 {
			return
		}
		quo, rem := new(big.Int).QuoRem(big.NewInt(a), big.NewInt(b), new(big.Int))
		if rem.Sign() > 0 {
			quo.Add(quo, big.NewInt(1))
		}
		require.Equal(t, quo.Int64(), limit.CeilDiv(a, b), "%d / %d", a, b)
	})
}

func TestMulDiv(t *testing.T) {
	divisors := []int64{1, 2, 3, 1_000_000_007, 1 << 32, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	pairs(func(a, b int64) {
		if a < 0 || b < 0 {
			return
		}
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		for _, c := range divisors {
			quo, rem := new(big.Int).QuoRem(product, big.NewInt(c), new(big.Int))
			require.Equal(t, held(quo), limit.MulDivFloor(a, b, c), "%d * %d / %d", a, b, c)
			if rem.Sign() > 0 {
				quo.Add(quo, big.NewInt(1))
			}
			require.Equal(t, held(quo), limit.MulDivCeil(a, b, c), "%d * %d / %d up", a, b, c)
		}
	})
}
