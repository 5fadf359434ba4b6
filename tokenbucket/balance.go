package tokenbucket

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// fresh returns the bucket of a new key, which has c.Init tokens. A new Warmup bucket is cold: it
// has all its permits. The error is [limit.ErrOverflow] if the debt cannot be stored.
func fresh(now limit.Instant, c *Call) (state, error) {
	s, err := emptied(now, c, c.Capacity-c.Init)
	s.stored = s.most
	return s, err
}

// emptied returns a bucket of the mode of c from which used whole tokens are missing; these may be
// more than its capacity. For a Warmup bucket, used has no effect, and the caller sets the stored
// permits. The error is [limit.ErrOverflow] if the debt cannot be stored.
func emptied(now limit.Instant, c *Call, used int64) (state, error) {
	s := state{mode: c.Mode, at: now}
	switch c.Mode {
	case Interval:
		s.used, s.count, s.period = used, c.Count, c.Period
		return s, s.fits(now)
	case Warmup:
		s.most, s.warmup = newCurve(c).most, c.Warmup
		return s, nil
	}
	s.interval, s.capacity = c.Interval, c.Capacity
	return s, s.push(now, times(c.Interval, used))
}

// settle advances a stored bucket to now. Only Interval and Warmup buckets change, since the others
// store an instant from which their balance follows.
func (s *state) settle(now limit.Instant) {
	switch s.mode {
	case Interval:
		s.credit(now)
	case Warmup:
		s.gather(now)
	}
}

// balance returns the number of whole tokens in a bucket of the given capacity. It is negative if
// more tokens than the capacity are in use. For Warmup it is the number of tokens that a change of
// mode keeps, which is 0 while a wait is promised.
func (s *state) balance(now limit.Instant, capacity int64) int64 {
	switch s.mode {
	case Interval:
		return limit.SatSub(capacity, s.used)
	case Leaky:
		return limit.SatSub(capacity, int64(until(s.at, now)/s.interval))
	case Warmup:
		if s.at > now {
			return 0
		}
		return min(capacity, int64(s.stored))
	}
	return limit.SatSub(capacity, limit.CeilDiv(int64(until(s.at, now)), int64(s.interval)))
}

// wait returns the time until the balance of a bucket of the given capacity is at least need,
// without further calls. It returns 0 if the balance is that large already. For a Warmup bucket,
// which has no such balance, it always returns 0.
func (s *state) wait(now limit.Instant, capacity, need int64) time.Duration {
	spare := limit.SatSub(capacity, need)
	switch s.mode {
	case Interval:
		return s.batchWait(now, spare)
	case Leaky:
		// A unit that has begun to leave does not count. So the balance increases 1 ns after the
		// backlog is a whole number of units.
		over := plus(until(s.at, now), -times(s.interval, limit.SatAdd(spare, 1)))
		return max(0, plus(over, 1))
	case Warmup:
		return 0
	}
	return max(0, plus(until(s.at, now), -times(s.interval, spare)))
}

// remaining returns the field Remaining of the answer: the number of whole tokens, from 0 to
// capacity. For a Warmup bucket it is 1 if a call need not wait, otherwise 0.
func (s *state) remaining(now limit.Instant, capacity int64) int64 {
	if s.mode == Warmup {
		if s.at > now {
			return 0
		}
		return 1
	}
	return max(0, min(s.balance(now, capacity), capacity))
}

// reset returns the field ResetAfter of the answer: the time until the bucket is full or, for Leaky
// and Warmup, until a call need not wait.
func (s *state) reset(now limit.Instant) time.Duration {
	if s.mode == Interval {
		return s.batchWait(now, 0)
	}
	return until(s.at, now)
}

// idle returns the instant from which the bucket is as if it had never been used.
func (s *state) idle(now limit.Instant) limit.Instant {
	if s.mode == Warmup {
		return s.cold()
	}
	return now.Add(s.reset(now))
}

// take takes quantity tokens, which must be positive, at the prices of c. The error is
// [limit.ErrOverflow] if the resulting debt cannot be stored.
func (s *state) take(now limit.Instant, quantity int64, c *Call) error {
	switch s.mode {
	case Interval:
		if s.used > math.MaxInt64-quantity {
			return limit.ErrOverflow
		}
		s.used += quantity
	case Warmup:
		return s.push(now, s.spend(quantity, newCurve(c)))
	default:
		return s.push(now, times(s.interval, quantity))
	}
	return s.fits(now)
}

// push moves the instant s.at further into the future by d. The error is [limit.ErrOverflow] if the
// resulting debt cannot be stored.
func (s *state) push(now limit.Instant, d time.Duration) error {
	debt := plus(until(s.at, now), d)
	if debt > maxDebt || debt > limit.MaxInstant.Sub(now) {
		return limit.ErrOverflow
	}
	s.at = now.Add(debt)
	return nil
}

// give returns quantity tokens, which must be positive, to the bucket. In the modes that store an
// instant, each token is worth interval. If more tokens are returned than are in use, the rest has
// no effect.
func (s *state) give(now limit.Instant, quantity int64, interval time.Duration) {
	if s.mode == Interval {
		s.used = max(0, s.used-quantity)
		return
	}
	s.at = max(now, now.Add(plus(until(s.at, now), -times(interval, quantity))))
}

// fits returns [limit.ErrOverflow] if the debt of the bucket is too large to be stored.
func (s *state) fits(now limit.Instant) error {
	reset := s.reset(now)
	if reset > maxDebt || reset > limit.MaxInstant.Sub(now) {
		return limit.ErrOverflow
	}
	return nil
}

// full reports whether the bucket is as if it had never been used, so that it need not be stored.
func (s *state) full(now limit.Instant) bool {
	return s.reset(now) == 0 && (s.mode != Warmup || s.stored >= s.most)
}
