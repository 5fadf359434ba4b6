package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// reprice converts a Greedy or Debt bucket to the call's form, interval and capacity, and reports
// whether that changes the stored state.
//
// The debt in tokens stays the same, rounded up to the nanosecond. Under Debt it follows Guava's
// setRate instead: the stored tokens scale with the capacity, and a promised wait keeps its
// instant. A change between the two forms follows the first rule.
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

// rescaledDebt converts a debt from a bucket that fills up in from to one that fills up in to. The
// part that exceeds the bucket is a wait that a caller was promised, which keeps its length.
func rescaledDebt(debt, from, to time.Duration) time.Duration {
	if debt >= from {
		return plus(to, debt-from)
	}
	return time.Duration(limit.MulDivCeil(int64(debt), int64(to), int64(from)))
}
