package hotkeys

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// recentPeriod is the time over which rates are averaged. It is short enough to show an attack
// at its full rate, and long enough to show a key that is denied only now and then.
const recentPeriod = 10 * time.Second

// recentCount estimates the number of calls within the last recentPeriod, in constant memory and
// without a timer. Time is divided into periods of that length. The estimate is the count of the
// current period, plus a fraction of the count of the previous period: the part of that period that
// lies within the last recentPeriod.
type recentCount struct {
	period     int64 // number of the period whose calls curr counts
	curr, prev int64
}

// add counts weight events at the instant now. The clocks of goroutines may differ a little, so an
// event of an earlier period counts for the current one.
func (r *recentCount) add(now limit.Instant, weight int64) {
	r.roll(int64(now) / int64(recentPeriod))
	r.curr += weight
}

// at returns the estimate at the instant now.
func (r recentCount) at(now limit.Instant) float64 {
	r.roll(int64(now) / int64(recentPeriod))
	elapsed := time.Duration(int64(now) % int64(recentPeriod))
	return float64(r.curr) + float64(r.prev)*(1-elapsed.Seconds()/recentPeriod.Seconds())
}

// roll makes the period with the number period the current one, unless the current period is later.
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

// over returns the time by which a recent count is divided to get a rate. counted is the time since
// counting began. The result is at least a second, because a shorter time gives no meaningful rate,
// and at most recentPeriod.
func over(counted time.Duration) time.Duration {
	return min(max(counted, time.Second), recentPeriod)
}
