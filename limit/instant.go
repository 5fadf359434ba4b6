// Package limit has the types and functions that all limiter families share. These are the
// [Instant], the [Decision], saturating arithmetic, the interval of one unit and the rounding of
// durations to the whole numbers of a reply.
//
// The package reads no clock, does no I/O and imports nothing of this module. The packages gcra,
// slidingwindow, tokenbucket and concurrency decide, and package keyspace stores.
package limit

import (
	"math"
	"time"
)

// Instant is a point in time in nanoseconds since the Unix epoch. It is a type of its own so that
// two instants cannot be added by mistake. The zero value is the epoch, which is in the past for
// every clock. As the TAT of an absent key it means that no units are in use.
type Instant int64

// MinInstant and MaxInstant are the first and the last instant, in the years 1677 and 2262.
// Arithmetic with instants saturates at them.
const (
	MinInstant Instant = math.MinInt64
	MaxInstant Instant = math.MaxInt64
)

// Add returns the instant that is d later than i, or earlier if d is negative. It saturates at
// [MinInstant] and [MaxInstant].
func (i Instant) Add(d time.Duration) Instant {
	return Instant(SatAdd(int64(i), int64(d)))
}

// Sub returns the duration from j to i, which is negative if i is before j. It saturates at the
// ends of time.Duration (292 years).
func (i Instant) Sub(j Instant) time.Duration {
	return time.Duration(SatSub(int64(i), int64(j)))
}
