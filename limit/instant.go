// Package limit has the types and functions that all limiter families share. These are the
// [Instant], the [Decision], saturating arithmetic, the interval of one unit and the rounding of
// durations to the whole numbers of a reply.
//
// It reads no clock, does no I/O and imports nothing of this module. The packages gcra,
// slidingwindow, tokenbucket and concurrency decide, and keyspace stores.
package limit

import (
	"math"
	"time"
)

// Instant is a point in time in nanoseconds since the Unix epoch. It is a separate type so that two
// instants cannot be added by mistake. The zero value is the epoch, which is in the past for every
// clock: as the TAT of an absent key it means that nothing is used.
type Instant int64

// The first and the last instant, in the years 1677 and 2262. Arithmetic saturates there.
const (
	MinInstant Instant = math.MinInt64
	MaxInstant Instant = math.MaxInt64
)

// Add returns the instant d later (earlier for a negative d), saturating at
// [MinInstant] and [MaxInstant].
func (i Instant) Add(d time.Duration) Instant {
	return Instant(SatAdd(int64(i), int64(d)))
}

// Sub returns the duration from j to i, saturating at the ends of
// time.Duration (292 years).
func (i Instant) Sub(j Instant) time.Duration {
	return time.Duration(SatSub(int64(i), int64(j)))
}
