package slidingwindow

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Slot returns the instant that identifies the slot which gets the units of the call, so that
// [GiveBack] can take some of them back later. The slot is the current window of FIXED, CALENDAR and COUNTER and
// the current slot of BUCKETS, identified by the instant at which it begins, and the newest entry of LOG,
// identified by its own instant. The call must be a charge, and p.Action must be Store.
func (p *Plan) Slot() limit.Instant {
	switch p.Mode {
	case Counter:
		return p.counter.start
	case Fixed, Calendar:
		return p.fixed.start
	case Buckets:
		return p.buckets.start.Add(time.Duration(p.buckets.begin(p.buckets.slot)))
	}
	return p.log.last.at
}
