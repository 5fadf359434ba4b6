package limit

import (
	"math"
	"math/bits"
	"time"
)

// Interval returns T, the time that one unit takes when count units pass per
// period, where period is given in the unit of the command (a second, or a
// millisecond under MS): trunc(float64(period*unit)/float64(count)) nanoseconds,
// held at int64. The product is exact before it becomes a float. Signs are
// ignored; count must not be zero. A result of 0 means that one unit takes less
// than a nanosecond.
//
// The floats are redis-cell's (src/cell/mod.rs): below periods of 2^53 ns (104
// days) they equal the integer quotient, beyond that the difference shows in the
// stored TAT, and a drop-in has to store the same.
func Interval(period int64, unit time.Duration, count int64) time.Duration {
	hi, lo := bits.Mul64(abs(period), abs(int64(unit)))
	f := float128(hi, lo) / float64(abs(count))
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(f)
}

// float128 returns hi*2^64+lo as the nearest float64, ties to even.
func float128(hi, lo uint64) float64 {
	if hi == 0 {
		return float64(lo)
	}
	// The 64 bits from the highest one down hold 11 more than a float does; what
	// lies below them matters only as being there, to break a tie.
	n := bits.LeadingZeros64(hi)
	top := hi<<n | lo>>(64-n)
	if lo<<n != 0 {
		top |= 1
	}
	return math.Ldexp(float64(top), 64-n)
}
