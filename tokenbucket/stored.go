package tokenbucket

import (
	"encoding/binary"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// TAT returns the TAT of a stored Greedy bucket, and T.
func TAT(value []byte) (tat limit.Instant, interval time.Duration) {
	return limit.Instant(word(value, 0)), time.Duration(word(value, 1))
}

// PutTAT changes the TAT of a stored Greedy bucket.
func PutTAT(value []byte, tat limit.Instant) { binary.LittleEndian.PutUint64(value, uint64(tat)) }

// Next returns the TAT of the bucket after the call, and T, if the plan changes a Greedy bucket or
// removes it because it is full.
func (p *Plan) Next() (tat limit.Instant, interval time.Duration) { return p.next.at, p.next.interval }

// Idle returns the instant from which a stored bucket is as if it had never been used: now, if it is full. short says
// that new keys of the call that stored it start with fewer tokens than the capacity.
func Idle(mode Mode, value []byte, now limit.Instant, short bool) limit.Instant {
	s := decode(mode, value)
	s.settle(now)
	at := s.idle(now)
	if short {
		if mode == Greedy || mode == Debt {
			at = s.at // this instant may have passed
		}
		at = at.Add(IdleLife)
	}
	return at
}

// Stored returns the parameters of a call that charges a stored bucket in its mode and at its rate. The
// caller sets the quantity and the charge. ok is false for a Warmup bucket, which does not store its
// rate.
func Stored(mode Mode, value []byte) (c Call, ok bool) {
	s := decode(mode, value)
	c = Call{Mode: mode, Capacity: 1, Init: 1, Count: 1, Interval: s.interval, Period: s.interval}
	switch mode {
	case Greedy, Leaky:
	case Debt:
		c.Capacity, c.Init = s.capacity, s.capacity
	case Interval:
		c.Count, c.Period = s.count, s.period
		c.Interval = limit.Interval(int64(s.period), time.Nanosecond, s.count)
	default:
		return c, false
	}
	return c, true
}
