package policy

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// maxDebt is the maximum time in nanoseconds that the capacity of a bucket may take to fill: see
// [tokenbucket.Call.Validate].
const maxDebt = 1 << 62

// Boost sets into to a copy of the clause, with its numbers multiplied by a factor. The factor is
// given in thousandths, from [MinFactor] to [MaxFactor]; [OneFactor] changes nothing. Boost
// allocates nothing.
//
// The limit or the capacity, and the count of a rate, are multiplied and rounded down. The result
// is at least 1, except that 0 stays 0. INIT keeps its ratio to the capacity. So into is the same
// as for a clause that is written with the multiplied numbers. Numbers that would not be valid are
// limited to valid ones: a token takes at least 1 ns, a bucket at most 2^62 ns to fill, and the
// limit of a LOG is at most sw-log-max-entries. A limit of CL.THROTTLE that is 0 or less, because
// of a negative max burst, does not change.
//
// The quantity in into is 1. The caller sets its own quantity, and then has to validate a bucket
// with DEBT again. The caller also sets the member of a lease. For ANCHOR KEY, [clause.Room.Clause]
// sets the phase.
func (c *Clause) Boost(thousandths int64, into *clause.Room) {
	into.Kind, into.KeyPhase, into.Calls, into.HasQuantity, into.Quantity = c.Kind, c.KeyPhase, c.Calls, false, 1
	switch c.Kind {
	case clause.Cell:
		into.Quota = *c.Quota
		if thousandths != OneFactor {
			c.boostQuota(thousandths, &into.Quota)
		}
	case clause.Window:
		into.Window = *c.Window
		into.Window.Limit = min(times(c.Window.Limit, thousandths), mostOf(c.Window))
	case clause.Bucket:
		into.Bucket = *c.Bucket
		if thousandths != OneFactor {
			c.boostBucket(thousandths, &into.Bucket)
		}
	case clause.Lease:
		into.Lease = *c.Lease
		into.Lease.Limit = times(c.Lease.Limit, thousandths)
	}
}

// times returns n multiplied by the factor and rounded down, but at least 1. If n is 0, it returns
// 0. n must not be negative.
func times(n, thousandths int64) int64 {
	if n == 0 {
		return 0
	}
	return max(1, limit.MulDivFloor(n, thousandths, OneFactor))
}

// mostOf returns the highest valid limit of a window.
func mostOf(w *slidingwindow.Call) int64 {
	switch {
	case w.Mode != slidingwindow.Log:
		return math.MaxInt64
	case w.LogMaxEntries <= 0:
		return slidingwindow.DefaultLogMaxEntries
	}
	return w.LogMaxEntries
}

func (c *Clause) boostQuota(thousandths int64, q *gcra.Quota) {
	most := c.Quota.Limit()
	if most > 0 {
		most = times(most, thousandths)
	}
	count := min(times(c.count, thousandths), max(c.count, c.periodIn(1)))
	*q, _ = gcra.NewQuotaPer(limit.SatSub(most, 1), count, c.period, unit(c.millis)) // no error: the rate is not 0 up to this count
}

func (c *Clause) boostBucket(thousandths int64, b *tokenbucket.Call) {
	// The count has two bounds. It must be so large that a capacity of one token, and with DEBT one
	// token more, fills within maxDebt. It must be at most the number of nanoseconds in the period,
	// so that a token takes at least 1 ns. limit.Interval computes in floats, so the count of the
	// clause itself may be just beyond a bound; then that count is kept.
	more := int64(0)
	if b.Mode == tokenbucket.Debt {
		more = 1
	}
	count := times(c.count, thousandths)
	count = max(count, min(c.count, c.periodIn(time.Duration(maxDebt/(1+more)))))
	count = min(count, max(c.count, c.periodIn(1)))
	b.Count = count
	b.Interval = limit.Interval(c.period, unit(c.millis), count)
	b.Capacity = min(times(c.Bucket.Capacity, thousandths), maxDebt/int64(b.Interval)-more)
	if c.Bucket.Capacity > 0 {
		b.Init = limit.MulDivFloor(c.Bucket.Init, b.Capacity, c.Bucket.Capacity)
	}
}

// periodIn returns the period divided by d, rounded up. A result above math.MaxInt64 becomes
// math.MaxInt64. d must be positive.
func (c *Clause) periodIn(d time.Duration) int64 {
	return limit.MulDivCeil(c.period, int64(unit(c.millis)), int64(d))
}
