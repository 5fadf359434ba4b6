package gcra

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ForceInto charges quantity cells at now even if that exceeds the limit, and writes the answer to
// d. It never refuses a positive quantity, unless q admits nothing because its limit is 0 or less.
// [limit.Decision.RetryAfter] is the time until one cell may arrive if more than the limit is used,
// otherwise [limit.NoRetry]. A quantity that is not positive is decided by [DecideInto]. The caller
// treats next and write as those of [DecideInto].
//
// The error is [limit.ErrOverflow] if the new TAT would be later than the last instant. Then the
// caller must store nothing, and d is undefined.
func ForceInto(d *limit.Decision, tat, now limit.Instant, q *Quota, quantity int64) (next limit.Instant, write bool, err error) {
	if quantity <= 0 || q.limit <= 0 {
		next, write = DecideInto(d, tat, now, q, quantity)
		return next, write, nil
	}
	after := charged(owed(tat, now), q.interval, quantity)
	if after > uint64(limit.MaxInstant.Sub(now)) {
		return tat, false, limit.ErrOverflow
	}
	used := limit.CeilDiv(int64(after), q.interval)
	*d = limit.Decision{Limit: q.limit, RetryAfter: limit.NoRetry, ResetAfter: time.Duration(after)}
	if !q.denies {
		d.Remaining = remaining(q.limit, used)
	}
	if used > q.limit && !q.denies {
		d.RetryAfter = time.Duration(int64(after) - limit.SatMul(q.interval, q.limit-1))
	}
	return now + limit.Instant(after), true, nil
}

// Free returns the largest quantity that [Decide] would allow at now for the stored TAT tat. It is
// 0 if Decide would deny even one cell.
func Free(tat, now limit.Instant, q *Quota) int64 {
	if q.denies {
		return 0
	}
	debt := owed(tat, now)
	free := remaining(q.limit, limit.CeilDiv(debt, q.interval))
	return max(0, min(free, (int64(limit.MaxInstant.Sub(now))-debt)/q.interval))
}

// owed returns the time from now to tat in nanoseconds, or 0 if tat has passed.
func owed(tat, now limit.Instant) int64 {
	if tat <= now {
		return 0
	}
	return int64(tat.Sub(now))
}
