package clock

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// A replica's clock follows the clock of its primary. A frame has the primary's instant at the time
// when it was sent. It arrives later, so the difference between that instant and the monotonic
// clock of the replica is at most the difference that there would be without a delay. The largest
// recent difference is the best one: with it the replica's clock is behind the primary's by the
// smallest delay, and never ahead.

const (
	// drift is the assumed maximum drift between two clocks, in parts per million. A measured
	// difference is reduced by the drift as time passes, so that the replica's clock is not ahead
	// even if the primary's clock is slower.
	drift = 100
	// keep is the minimum time for which a measured difference is used; the maximum is twice keep.
	// Because old differences are dropped, a clock with a larger drift is corrected too.
	keep = 10 * time.Second
)

// primary estimates the primary's clock. best and before are the largest differences between the
// primary's instants and the monotonic clock, in the present and in the previous period. Both are
// reduced by the drift up to the monotonic time at.
type primary struct {
	best, before int64
	at           int64
	since        int64 // monotonic time in nanoseconds at which the present period began
}

// far is a later instant than any clock shows. An instant from another server is invalid if it is
// not between 0 and far.
const far = limit.MaxInstant / 2

// none is the value of a difference that was not measured.
const none = math.MinInt64

// forget drops all differences and begins a new period at the monotonic time mono.
func (p *primary) forget(mono int64) { *p = primary{none, none, mono, mono} }

// add adds a difference that was measured at the monotonic time mono, and returns the difference to
// use: the largest one of the present and the previous period.
func (p *primary) add(difference, mono int64) int64 {
	less := (mono - p.at) / (1_000_000 / drift)
	if mono > p.at { // round up
		less++
	}
	p.at = mono
	p.best, p.before = worth(p.best, less), worth(p.before, less)
	if lasted := mono - p.since; lasted >= int64(keep) {
		if p.before = p.best; lasted >= 2*int64(keep) {
			p.before = none // no frame has arrived for a long time, so the old difference is dropped
		}
		p.best, p.since = none, mono
	}
	p.best = max(p.best, difference)
	return max(p.best, p.before)
}

// worth returns difference reduced by less, or none if difference is none.
func worth(difference, less int64) int64 {
	if difference == none {
		return none
	}
	return difference - less
}

// shift increases the differences by more, the time for which the machine was suspended and the
// monotonic clock stood still.
func (p *primary) shift(more int64) {
	p.best, p.before = worth(p.best, -more), worth(p.before, -more)
}
