package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Mode is the stored form of a bucket. The values are part of the file formats and never change
// their meaning.
type Mode uint8

// The modes. None stands for an absent key.
const (
	None Mode = 0
	// Greedy refills continuously. It stores the TAT, the instant at which the
	// bucket is full, and the time of one token.
	Greedy Mode = 1
	// Debt is Greedy that grants any quantity while the balance is not negative, so that later
	// calls pay (Guava's SmoothBursty). It stores its capacity as well, because a change of the
	// capacity scales the stored tokens.
	Debt Mode = 2
	// Interval refills a whole batch at a time, counted from the call that found the bucket full.
	Interval Mode = 3
	// Leaky is a queue from which one unit leaves per interval. It stores the first instant that is
	// not promised to a caller yet, and the time of one unit.
	Leaky Mode = 4
	// Warmup is Guava's SmoothWarmingUp: permits that have accumulated while the bucket was idle
	// cost more, the more of them there are.
	Warmup Mode = 5
)

var modeNames = [...]string{"none", "greedy", "debt", "interval", "leaky", "warmup"}

// String returns the mode as OBJECT ENCODING shows it.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// continuous reports whether the mode stores a TAT. Greedy and Debt are one bucket
// in two forms: going from one to the other is not a change of mode.
func (m Mode) continuous() bool { return m == Greedy || m == Debt }

const (
	// maxDebt bounds every debt in nanoseconds (146 years), so that the sum of two
	// of them still fits into int64.
	maxDebt time.Duration = 1 << 62
	// maxWarmup bounds the warm-up duration.
	maxWarmup time.Duration = 1 << 61
	// idleLife is how long a key with an INIT below its capacity is kept after it is full. Without
	// it a new key would start at INIT again as soon as the old one is full.
	idleLife = 3600 * time.Second
)

// times returns d*n, saturating at the ends of int64.
func times(d time.Duration, n int64) time.Duration {
	return time.Duration(limit.SatMul(int64(d), n))
}

// plus returns a+b, saturating at the ends of int64.
func plus(a, b time.Duration) time.Duration {
	return time.Duration(limit.SatAdd(int64(a), int64(b)))
}

// until returns the time from now to at, 0 if at has passed.
func until(at, now limit.Instant) time.Duration { return max(0, at.Sub(now)) }

// orNoRetry replaces a wait of 0 by NoRetry.
func orNoRetry(wait time.Duration) time.Duration {
	if wait == 0 {
		return limit.NoRetry
	}
	return wait
}
