package limit

import (
	"math"
	"math/bits"
)

// SatAdd returns a+b. A sum beyond the range of int64 becomes the nearest int64.
func SatAdd(a, b int64) int64 {
	c := a + b
	if (a^c)&(b^c) < 0 {
		return end(a)
	}
	return c
}

// SatSub returns a-b. A difference beyond the range of int64 becomes the nearest int64.
func SatSub(a, b int64) int64 {
	c := a - b
	if (a^b)&(a^c) < 0 {
		return end(a)
	}
	return c
}

// SatMul returns a*b. A product beyond the range of int64 becomes the nearest int64.
func SatMul(a, b int64) int64 {
	hi, lo := bits.Mul64(abs(a), abs(b))
	if (a < 0) != (b < 0) {
		if hi != 0 || lo > 1<<63 {
			return math.MinInt64
		}
		return -int64(lo)
	}
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// MulDivFloor returns floor(a*b/c). The product has 128 bits, so it does not overflow; a result
// above math.MaxInt64 becomes math.MaxInt64. a and b must not be negative, and c must be positive.
func MulDivFloor(a, b, c int64) int64 {
	q, _ := mulDiv(a, b, c)
	return q
}

// MulDivCeil returns ceil(a*b/c). The product has 128 bits, so it does not overflow; a result above
// math.MaxInt64 becomes math.MaxInt64. a and b must not be negative, and c must be positive.
func MulDivCeil(a, b, c int64) int64 {
	q, rem := mulDiv(a, b, c)
	if rem != 0 && q < math.MaxInt64 {
		q++
	}
	return q
}

// CeilDiv returns ceil(a/b). a must not be negative, and b must be positive.
func CeilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

func mulDiv(a, b, c int64) (q int64, rem uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	quo, rem := bits.Div64(hi, lo, uint64(c))
	if quo > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(quo), rem
}

func abs(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// end returns math.MinInt64 if a is negative, else math.MaxInt64.
func end(a int64) int64 {
	if a < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}
