package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Mode is the stored form of a bucket. The values of the constants are part of the file formats and
// never change their meaning.
type Mode uint8

// These are the values of [Mode]. None is the mode of an absent key.
const (
	None Mode = 0
	// Greedy refills continuously. It stores the TAT, which is the instant at which the bucket is
	// full, and the time of one token.
	Greedy Mode = 1
	// Debt refills like Greedy and grants any quantity while the balance is not negative, so that
	// later calls pay for it. It is Guava's SmoothBursty. It stores its capacity as well, because a
	// change of the capacity scales the stored tokens.
	Debt Mode = 2
	// Interval refills a whole batch at a time. Its periods begin at the call that found the bucket
	// full.
	Interval Mode = 3
	// Leaky is a queue from which one unit leaves per interval. It stores the first instant that is
	// not promised to a caller yet, and the time of one unit.
	Leaky Mode = 4
	// Warmup is Guava's SmoothWarmingUp. It stores permits that accumulate while the bucket is
	// idle; the more of them are stored, the more each costs.
	Warmup Mode = 5
)

var modeNames = [...]string{"none", "greedy", "debt", "interval", "leaky", "warmup"}

// String returns the name of the mode, as OBJECT ENCODING shows it.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// continuous reports whether the mode stores a TAT, as Greedy and Debt do. A change between these
// two is not a change of mode, since their buckets differ only in form.
func (m Mode) continuous() bool { return m == Greedy || m == Debt }

const (
	// maxDebt is the maximum of every debt, 146 years, so that the sum of two debts still fits into
	// int64.
	maxDebt time.Duration = 1 << 62
	// maxWarmup is the maximum duration of the warm-up.
	maxWarmup time.Duration = 1 << 61
	// IdleLife is the time for which a key with Init below Capacity is kept after its bucket is
	// full. Without it, a key would start with only Init tokens again as soon as its bucket is
	// full.
	IdleLife = 3600 * time.Second
)

// times returns d*n. A product beyond the range of int64 becomes the nearest int64.
func times(d time.Duration, n int64) time.Duration {
	return time.Duration(limit.SatMul(int64(d), n))
}

// plus returns a+b. A sum beyond the range of int64 becomes the nearest int64.
func plus(a, b time.Duration) time.Duration {
	return time.Duration(limit.SatAdd(int64(a), int64(b)))
}

// until returns the time from now to at, or 0 if at has passed.
func until(at, now limit.Instant) time.Duration { return max(0, at.Sub(now)) }

func orNoRetry(wait time.Duration) time.Duration {
	if wait == 0 {
		return limit.NoRetry
	}
	return wait
}
