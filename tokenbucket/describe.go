package tokenbucket

import (
	"math"

	"github.com/cellserver/cellserver/limit"
)

// Describe calls emit with each field of a stored value that RL.INFO shows: the stored numbers
// (instants in nanoseconds since the Unix epoch, durations in nanoseconds, counts at now), the
// tokens in use, and reset-ms. Limits that the mode does not store are left out. The permits of a
// Warmup bucket are in millionths. value must pass [Check].
func Describe(mode Mode, value []byte, now limit.Instant, emit func(field string, value int64)) {
	if mode.size() == 0 {
		return
	}
	s := decode(mode, value)
	s.settle(now)
	switch mode {
	case Greedy, Debt:
		emit("tat-ns", int64(s.at))
		emit("interval-ns", int64(s.interval))
		if mode == Debt {
			emit("capacity", s.capacity)
		}
		emit("debt-ns", int64(until(s.at, now)))
		emit("used", -s.balance(now, 0))
	case Interval:
		emit("last-ns", int64(s.at))
		emit("count", s.count)
		emit("period-ns", int64(s.period))
		emit("used", s.used)
	case Leaky:
		emit("next-ns", int64(s.at))
		emit("interval-ns", int64(s.interval))
		emit("debt-ns", int64(until(s.at, now)))
		emit("used", -s.balance(now, 0))
	case Warmup:
		emit("next-ns", int64(s.at))
		emit("warmup-ns", int64(s.warmup))
		emit("stored-millionths", millionths(s.stored))
		emit("capacity-millionths", millionths(s.most))
		emit("debt-ns", int64(until(s.at, now)))
	}
	emit("reset-ms", limit.MillisUp(s.reset(now)))
}

// Unknown is the result of [Room] for a number that the state does not have.
const Unknown int64 = -1

// Room returns the limit and the remaining tokens of a stored bucket, as a call with quantity 0
// would answer them. Only Debt stores its capacity; for other modes it is the argument capacity,
// and [Unknown] if that is. What remains of Warmup does not depend on a capacity. value must pass
// [Check].
func Room(mode Mode, value []byte, now limit.Instant, capacity int64) (most, remaining int64) {
	if mode.size() == 0 {
		return Unknown, Unknown
	}
	s := decode(mode, value)
	s.settle(now)
	if mode == Debt {
		capacity = s.capacity
	}
	if capacity == Unknown && mode != Warmup {
		return Unknown, Unknown
	}
	return capacity, s.remaining(now, capacity)
}

// millionths returns permits in millionths, saturating at the end of int64.
func millionths(permits float64) int64 {
	const most = 1 << 63
	if n := permits * 1e6; n < most {
		return int64(n)
	}
	return math.MaxInt64
}
