package clock

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// A replica's clock follows that of its primary. A frame says which instant it was there when
// the frame was sent. It came some time later, so the difference of that instant and the
// monotonic clock here is at most what it would be without a delay: the largest difference of
// late is the best, and the clock is behind the primary by the least delay, never ahead.

const (
	// drift is by how much two clocks go apart at most, in parts of a million. A difference
	// is worth less by that as time passes, so that the clock is not ahead although the
	// primary's may be slower.
	drift = 100
	// keep is for how long a difference counts at least, and for twice that at most: so a
	// clock that drifts by more is put right all the same.
	keep = 10 * time.Second
)

// primary is what is known of the primary's clock: the largest difference from mono of the
// present and of the last stretch of time, as they are worth at mono at.
type primary struct {
	best, before int64
	at           int64
	since        int64 // mono when the present stretch began
}

// far is an instant later than any that a clock shows. One from elsewhere that is not between
// 0 and far is no instant of a server's clock, and is not followed.
const far = limit.MaxInstant / 2

// none is the difference while there was none.
const none = math.MinInt64

// forget begins anew at mono.
func (p *primary) forget(mono int64) { *p = primary{none, none, mono, mono} }

// add takes a difference that was found at mono, and returns the one to go by.
func (p *primary) add(difference, mono int64) int64 {
	less := (mono - p.at) / (1_000_000 / drift)
	if mono > p.at { // round up
		less++
	}
	p.at = mono
	p.best, p.before = worth(p.best, less), worth(p.before, less)
	if lasted := mono - p.since; lasted >= int64(keep) {
		if p.before = p.best; lasted >= 2*int64(keep) {
			p.before = none // no frame has come for long
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

// shift adds what mono was standing still for.
func (p *primary) shift(more int64) {
	p.best, p.before = worth(p.best, -more), worth(p.before, -more)
}
