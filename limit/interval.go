package limit

import (
	"math"
	"time"
)

// Interval returns T, the time that one unit takes when count units pass per
// period, where period is given in the unit of the command (a second, or a
// millisecond under MS): trunc(float64(period*unit)/float64(count)) nanoseconds,
// held at int64.
//
// The floats are redis-cell's (src/cell/mod.rs): below periods of 2^53 ns (104
// days) they equal the integer quotient, beyond that the difference shows in the
// stored TAT, and a drop-in has to store the same. period and count must be
// positive; 0 means that one unit takes less than a nanosecond.
func Interval(period int64, unit time.Duration, count int64) time.Duration {
	f := float64(period) * float64(unit) / float64(count)
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(f)
}
