package tokenbucket

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// credit adds the batches that were due since the bucket was stored. A bucket that is full by then
// has no phase: the next call that takes from it starts a new period.
func (s *state) credit(now limit.Instant) {
	if now > s.at {
		batches := int64(now.Sub(s.at) / s.period)
		s.used = max(0, limit.SatSub(s.used, limit.SatMul(batches, s.count)))
		s.at = s.at.Add(times(s.period, batches))
	}
	if s.used == 0 {
		s.at = now
	}
}

// batchWait returns the time until at most spare tokens are in use. It is the time until enough
// batches have been added.
func (s *state) batchWait(now limit.Instant, spare int64) time.Duration {
	if s.used <= spare {
		return 0
	}
	batches := limit.CeilDiv(s.used-spare, s.count)
	return max(0, plus(s.at.Sub(now), times(s.period, batches)))
}

func (s *state) samePair(c *Call) bool {
	return s.count == c.Count && s.period == c.Period
}
