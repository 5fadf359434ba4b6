package limiters

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// recentPeriod is the time over which RL.TOP averages its rates. It is short enough to show an
// attack at its full rate, and long enough for a key that is denied now and then.
const recentPeriod = 10 * time.Second

// recentCount counts the events of about the last recentPeriod, in constant memory and without a
// timer. It adds to the count of the current period that of the previous one, weighted by the
// part of it that the last recentPeriod still overlaps.
type recentCount struct {
	period     int64 // the number of the period that curr counts
	curr, prev int64
}

// add counts weight at now. The clocks of workers may differ by a moment: a late event counts for
// the current period.
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

// roll advances to a later period.
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

// over returns the time to divide a recent count by, if counting began the duration counted ago.
// It is at least a second, since less does not give a rate per second.
func over(counted time.Duration) time.Duration {
	return min(max(counted, time.Second), recentPeriod)
}
