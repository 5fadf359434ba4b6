package gcra

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ForceInto charges quantity cells at now even if that is more than the limit, and writes the
// answer to d: never refused, with the time until one cell may arrive in
// [limit.Decision.RetryAfter] if more is used than the limit, else [limit.NoRetry]. A limit
// of 0 or less denies, as it does in [DecideInto]. The caller does with next what it does with that of
// [DecideInto], which also decides a quantity that is not positive.
//
// The error is [limit.ErrOverflow] if the new TAT would lie past the last instant. Then
// nothing is to be written, and d means nothing.
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

// Free returns the greatest quantity that [Decide] lets arrive at now, 0 if not even one cell
// may.
func Free(tat, now limit.Instant, q *Quota) int64 {
	if q.denies {
		return 0
	}
	debt := owed(tat, now)
	free := remaining(q.limit, limit.CeilDiv(debt, q.interval))
	return max(0, min(free, (int64(limit.MaxInstant.Sub(now))-debt)/q.interval))
}

// owed is how far tat lies after now.
func owed(tat, now limit.Instant) int64 {
	if tat <= now {
		return 0
	}
	return int64(tat.Sub(now))
}
