package limit

import (
	"math"
	"math/bits"
	"time"
)

// Interval returns T, the time of one unit when count units pass per period. period is a number of
// units of time, such as seconds, and unit is the length of one such unit. The result is
// trunc(float64(period*unit)/float64(count)) nanoseconds, and saturates at math.MaxInt64. The
// product is exact before it is converted to a float. Signs are ignored; count must not be zero. A
// result of 0 means that one unit takes less than a nanosecond.
//
// The floating-point division is the same as in redis-cell (src/cell/mod.rs). For periods below
// 2^53 ns (104 days) it equals the integer quotient. For longer periods the difference is visible
// in the stored TAT, and a drop-in replacement has to store the same.
func Interval(period int64, unit time.Duration, count int64) time.Duration {
	hi, lo := bits.Mul64(abs(period), abs(int64(unit)))
	f := float128(hi, lo) / float64(abs(count))
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(f)
}

// float128 returns the float64 that is nearest to hi*2^64+lo. If two are equally near, it returns
// the one with an even mantissa.
func float128(hi, lo uint64) float64 {
	if hi == 0 {
		return float64(lo)
	}
	// The upper 64 bits are 11 bits more than the mantissa of a float64 has. The lower bits matter
	// only for breaking a tie, for which it is enough to know whether any of them is set.
	n := bits.LeadingZeros64(hi)
	top := hi<<n | lo>>(64-n)
	if lo<<n != 0 {
		top |= 1
	}
	return math.Ldexp(float64(top), 64-n)
}
