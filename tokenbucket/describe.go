package tokenbucket

import (
	"math"

	"github.com/cellserver/cellserver/limit"
)

// Describe calls emit with each field that RL.INFO shows of a stored value: the stored numbers, the
// tokens in use and reset-ms. Instants are in nanoseconds since the Unix epoch, durations in
// nanoseconds, and counts are those at now. The permits of a Warmup bucket are in millionths.
// Parameters that the mode does not store are left out. value must pass [Check] under mode. For an
// unknown mode Describe emits nothing.
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

// Unknown in [Room] stands for a number that is not known, because the stored state does not have
// it.
const Unknown int64 = -1

// Room returns most, the limit of a stored bucket, and remaining, its remaining tokens, as a call
// with quantity 0 would answer them. Debt mode stores its capacity; in other modes the parameter
// capacity is used. If capacity is [Unknown], both results are Unknown, except in Warmup mode,
// where remaining does not depend on the capacity. value must pass [Check] under mode. For an
// unknown mode both results are Unknown.
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

// millionths returns permits in millionths. A result above math.MaxInt64 becomes math.MaxInt64.
func millionths(permits float64) int64 {
	const most = 1 << 63
	if n := permits * 1e6; n < most {
		return int64(n)
	}
	return math.MaxInt64
}
