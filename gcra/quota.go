package gcra

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ErrZeroRate means that one cell would take no time: count or period is zero, or a period has more
// cells than nanoseconds.
var ErrZeroRate = errors.New("zero rates are not supported")

// Quota has the numbers that [Decide] needs, derived from the arguments of a call. It is a value of
// 24 bytes without pointers. Valid quotas are the results of [NewQuota], [NewQuotaPer] and
// [Quota.Share]; the zero value is not valid.
type Quota struct {
	// interval is T, the emission interval in nanoseconds. It is at least 1.
	interval int64
	// limit is max burst + 1, or math.MaxInt64 if that would overflow. It is zero or negative if
	// the max burst is negative.
	limit int64
	// denies is true if exactly one of count and period is negative. Such a rate admits nothing.
	denies bool
}

// NewQuota returns the quota of a call of CL.THROTTLE: count cells per period seconds, of which
// maxBurst + 1 may arrive at once. The only error is [ErrZeroRate].
//
// Every combination of arguments other than a zero rate has a meaning, which is that of redis-cell
// where that is reasonable. A negative maxBurst makes a limit of zero or less, which admits no
// positive quantity. If count and period are both negative, they act as if both were positive. If
// exactly one of them is negative, every call is denied. With a maxBurst of math.MaxInt64, the
// limit is math.MaxInt64.
func NewQuota(maxBurst, count, period int64) (Quota, error) {
	return NewQuotaPer(maxBurst, count, period, time.Second)
}

// NewQuotaPer does the same as [NewQuota] with a period in the given unit, which may be a
// millisecond. The errors are the same, too.
func NewQuotaPer(maxBurst, count, period int64, unit time.Duration) (Quota, error) {
	if count == 0 || period == 0 {
		return Quota{}, ErrZeroRate
	}
	interval := int64(limit.Interval(period, unit, count))
	if interval == 0 {
		return Quota{}, ErrZeroRate
	}
	return Quota{
		interval: interval,
		limit:    limit.SatAdd(maxBurst, 1),
		denies:   (count < 0) != (period < 0),
	}, nil
}

// Limit returns the number of cells that are admitted at once: max burst + 1.
func (q *Quota) Limit() int64 { return q.limit }

// Interval returns the emission interval T, the time of one cell.
func (q *Quota) Interval() time.Duration { return time.Duration(q.interval) }

// Share returns the quota of each of n servers that share q equally. The rate and the limit of the
// result are the numbers of q divided by n, with the limit rounded down but at least 1. A limit of
// 0 or less stays the same. If n is 1 or less, the result is q.
func (q *Quota) Share(n int64) Quota {
	s := *q
	if n > 1 {
		s.interval = limit.SatMul(q.interval, n)
		if q.limit > 0 {
			s.limit = max(1, q.limit/n)
		}
	}
	return s
}
