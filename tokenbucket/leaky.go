package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// queue decides a call to a Leaky bucket. The units ahead of the call in the queue are those that
// have not begun to leave. A call is refused if there is no room behind them for its quantity, or
// if it would have to wait longer than its MaxWait. It returns the same results as judge.
func (s *state) queue(now limit.Instant, c *Call) (granted int64, after time.Duration) {
	slot := until(s.at, now)
	granted = c.Quantity
	if c.Charge == Partial {
		granted = min(granted, s.balance(now, c.Capacity))
		if granted <= 0 {
			return 0, s.wait(now, c.Capacity, 1)
		}
		return granted, orNoRetry(slot)
	}
	room := s.wait(now, c.Capacity, c.Quantity)
	if c.Waits {
		room = max(room, slot-c.MaxWait)
	}
	if room > 0 {
		return 0, room
	}
	return granted, orNoRetry(slot)
}
