package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// reprice converts a Greedy or Debt bucket to the mode, interval and capacity of c. changed is true
// if the interval changes, or the capacity of a bucket that stays in Debt mode, so that the stored
// state must be replaced. The error is [limit.ErrOverflow] if the new debt cannot be stored.
//
// The debt in tokens stays the same, rounded up to the nanosecond. A bucket that stays in Debt mode
// follows Guava's setRate instead: the stored tokens scale with the capacity, and the instant until
// which a caller has to wait does not change.
func (s *state) reprice(now limit.Instant, c *Call) (changed bool, err error) {
	debt := until(s.at, now)
	switch {
	case s.mode == Debt && c.Mode == Debt:
		if s.interval == c.Interval && s.capacity == c.Capacity {
			return false, nil
		}
		debt = rescaledDebt(debt, times(s.interval, s.capacity), times(c.Interval, c.Capacity))
	case s.interval != c.Interval:
		debt = time.Duration(limit.MulDivCeil(int64(debt), int64(c.Interval), int64(s.interval)))
	default:
		s.mode, s.capacity = c.Mode, c.Capacity
		return false, nil
	}
	s.mode, s.interval, s.capacity, s.at = c.Mode, c.Interval, c.Capacity, now
	return true, s.push(now, debt)
}

// rescaledDebt returns debt, converted for a bucket whose capacity or rate changes. from is the
// time in which an empty bucket was filled before the change, and to is that time after the change.
// The part of debt above from is a wait that a caller was promised; its length does not change.
func rescaledDebt(debt, from, to time.Duration) time.Duration {
	if debt >= from {
		return plus(to, debt-from)
	}
	return time.Duration(limit.MulDivCeil(int64(debt), int64(to), int64(from)))
}
