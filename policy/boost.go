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

// Boost fills into with the clause, its numbers multiplied by a factor in thousandths, from
// [MinFactor] to [MaxFactor]; [OneFactor] changes nothing. It allocates nothing.
//
// The limit or capacity and the count are multiplied, rounded down, and at least 1, but 0 stays 0.
// INIT keeps its part of the capacity. So the result is the clause with these numbers as arguments.
// Numbers that would not be valid are limited to valid ones: a token takes at least 1 ns, a bucket
// at most 2^62 ns to fill, and the limit of a LOG is at most sw-log-max-entries. A limit of
// CL.THROTTLE of 0 or less, which its max burst may cause, remains.
//
// The quantity is 1. The caller sets its own quantity, validates a bucket with DEBT again with it,
// and sets the member of a lease. The phase of ANCHOR KEY is that of [clause.Room.Clause].
func (c *Clause) Boost(thousandths int64, into *clause.Room) {
	into.Kind, into.KeyPhase, into.HasQuantity, into.Quantity = c.Kind, c.KeyPhase, false, 1
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

// times returns n, which is not negative, multiplied by the factor: at least 1, unless n is 0.
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
	*q, _ = gcra.NewQuotaPer(limit.SatSub(most, 1), count, c.period, unit(c.millis)) // the rate is not 0 up to this count
}

func (c *Clause) boostBucket(thousandths int64, b *tokenbucket.Call) {
	// The interval is at least 1 ns up to one token for each ns of the period. With DEBT the
	// balance may be one token more than the capacity. So a bucket is valid if each of its tokens
	// takes at most maxDebt divided by their number. The interval is computed in floats (see
	// limit.Interval), so a valid count may be just beyond this bound; then that count is kept.
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

// periodIn returns how many times d fits into the period, rounded up, and limited to int64. d is
// positive.
func (c *Clause) periodIn(d time.Duration) int64 {
	return limit.MulDivCeil(c.period, int64(unit(c.millis)), int64(d))
}
