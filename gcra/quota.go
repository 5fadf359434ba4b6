package gcra

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ErrZeroRate says that one cell would take no time at all: count or period is
// zero, or there are more cells than nanoseconds in a period.
var ErrZeroRate = errors.New("zero rates are not supported")

// Quota has the limit of a caller in the derived numbers that [Decide] needs. It is a value of 24
// bytes without pointers. Only [NewQuota] and [NewQuotaPer] make valid quotas; the zero value is
// not valid.
type Quota struct {
	// interval is T, the emission interval: at least 1 ns.
	interval int64
	// limit is max burst + 1, held at int64. It is zero or negative when the max
	// burst is negative.
	limit int64
	// denies is set when exactly one of count and period is negative: such a rate
	// runs backwards and admits nothing.
	denies bool
}

// NewQuota returns the quota of CL.THROTTLE: count cells per period seconds, and a burst of
// maxBurst more than one. It is the only function here that can fail, with [ErrZeroRate].
//
// Every other combination has a meaning, redis-cell's where that is sane: a
// negative max burst makes a limit of zero or less, which admits no positive
// quantity; count and period both negative act as if both were positive; exactly
// one of them negative denies every call. A max burst of the largest int64
// saturates.
func NewQuota(maxBurst, count, period int64) (Quota, error) {
	return NewQuotaPer(maxBurst, count, period, time.Second)
}

// NewQuotaPer is [NewQuota] with a period in the given unit, for callers whose
// periods may be milliseconds.
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

// Limit returns the number of cells admitted at once: max burst + 1.
func (q *Quota) Limit() int64 { return q.limit }

// Interval returns the emission interval T, the time that one cell takes.
func (q *Quota) Interval() time.Duration { return time.Duration(q.interval) }

// Share returns the quota of one of n servers that divide this one: rate and limit divided by n, a
// positive limit at least 1.
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
