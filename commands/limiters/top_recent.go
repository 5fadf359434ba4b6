package limiters

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// recentPeriod is the time that RL.TOP's figures per second are of: short enough to
// show an attack as it is, long enough for a key that is denied now and then.
const recentPeriod = 10 * time.Second

// recentCount counts what happened in about the last recentPeriod, in a fixed amount
// of memory and without a timer: this period's count, and that of the one before in
// the proportion in which the last recentPeriod still overlaps it.
type recentCount struct {
	period     int64 // number of the period that curr counts
	curr, prev int64
}

// add counts weight at now. Workers may differ by a moment: what comes late counts for
// the period that has begun.
func (r *recentCount) add(now limit.Instant, weight int64) {
	r.roll(int64(now) / int64(recentPeriod))
	r.curr += weight
}

// at returns the count at now.
func (r recentCount) at(now limit.Instant) float64 {
	r.roll(int64(now) / int64(recentPeriod))
	elapsed := time.Duration(int64(now) % int64(recentPeriod))
	return float64(r.curr) + float64(r.prev)*(1-elapsed.Seconds()/recentPeriod.Seconds())
}

// roll goes on to a later period.
func (r *recentCount) roll(period int64) {
	switch {
	case period <= r.period:
		return
	case period == r.period+1:
		r.prev = r.curr
	default:
		r.prev = 0
	}
	r.period, r.curr = period, 0
}

// over is the time that a recent count is to be divided by, when counting began that
// long ago. Below a second nothing is known of a rate per second.
func over(counted time.Duration) time.Duration {
	return min(max(counted, time.Second), recentPeriod)
}
