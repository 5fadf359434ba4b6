package clock

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// A replica's clock follows that of its primary. A frame has the primary's instant at the time when
// it was sent. It arrives later, so the difference between that instant and the monotonic clock of
// the replica is at most what it would be without a delay. The largest recent difference is the
// best one: with it the clock is behind the primary by the smallest delay, and never ahead.

const (
	// drift is the assumed maximum drift between two clocks, in parts per million. A difference is
	// reduced by it as time passes, so that the clock is not ahead even if the primary's is slower.
	drift = 100
	// keep is the shortest time for which a difference counts; the longest is twice that. So a
	// clock with a larger drift is corrected too.
	keep = 10 * time.Second
)

// primary estimates the primary's clock: best and before are the largest differences from mono in
// the present and in the previous period, reduced by the drift until mono was at.
type primary struct {
	best, before int64
	at           int64
	since        int64 // mono when the present period began
}

// far is an instant later than any that a clock shows. An instant from another server that is not
// between 0 and far is invalid, and is not followed.
const far = limit.MaxInstant / 2

// none means that there was no difference.
const none = math.MinInt64

// forget starts again at mono without any difference.
func (p *primary) forget(mono int64) { *p = primary{none, none, mono, mono} }

// add takes a difference that was measured at mono, and returns the one to use.
func (p *primary) add(difference, mono int64) int64 {
	less := (mono - p.at) / (1_000_000 / drift)
	if mono > p.at { // round up
		less++
	}
	p.at = mono
	p.best, p.before = worth(p.best, less), worth(p.before, less)
	if lasted := mono - p.since; lasted >= int64(keep) {
		if p.before = p.best; lasted >= 2*int64(keep) {
			p.before = none // no frame has arrived for a long time
		}
		p.best, p.since = none, mono
	}
	p.best = max(p.best, difference)
	return max(p.best, p.before)
}

func worth(difference, less int64) int64 {
	if difference == none {
		return none
	}
	return difference - less
}

// shift adds the time for which mono stood still.
func (p *primary) shift(more int64) {
	p.best, p.before = worth(p.best, -more), worth(p.before, -more)
}
