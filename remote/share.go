package remote

import (
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// The functions of this file compute the share of one of n servers in a limit and its rate. n is
// at least 1.

// share returns a server's share of the quantity most: an n-th, but at least 1. A limit of 0,
// which denies every call, stays 0.
func share(most, n int64) int64 { return max(min(1, most), most/n) }

// shareKept returns a server's share of the units that a call leaves for others, rounded up.
func shareKept(keep, n int64) int64 { return limit.MulDivCeil(keep, 1, n) }

func shareWindow(c *slidingwindow.Call, n int64) { c.Limit = share(c.Limit, n) }

// shareBucket replaces the capacity, the tokens at the start and the rate of c by a server's share.
// If the new rate would be invalid, the original rate stays.
func shareBucket(c *tokenbucket.Call, n int64) {
	whole := *c
	c.Capacity = share(c.Capacity, n)
	c.Init = c.Init / n
	if whole.Init >= whole.Capacity {
		c.Init = c.Capacity
	}
	c.Interval = time.Duration(limit.SatMul(int64(whole.Interval), n))
	// A batch is divided like the capacity. If the share of a small batch is rounded up, the period
	// gets longer in return.
	c.Count = share(whole.Count, n)
	c.Period = time.Duration(limit.MulDivCeil(limit.SatMul(int64(whole.Period), n), c.Count, whole.Count))
	if c.Validate() != nil {
		c.Interval, c.Count, c.Period = whole.Interval, whole.Count, whole.Period
	}
}

// shareClauses returns copies of the clauses of an RL.MULTI, with a server's share of each limit.
func shareClauses(all []decide.Clause, n int64) []decide.Clause {
	mine := make([]decide.Clause, len(all))
	for i, c := range all {
		c.Keep = shareKept(c.Keep, n)
		switch {
		case c.Quota != nil:
			q := c.Quota.Share(n)
			c.Quota = &q
		case c.Window != nil:
			w := *c.Window
			shareWindow(&w, n)
			c.Window = &w
		case c.Lease != nil:
			l := *c.Lease
			l.Limit = share(l.Limit, n)
			c.Lease = &l
		case c.Unlimited:
		default:
			b := *c.Bucket
			shareBucket(&b, n)
			c.Bucket = &b
		}
		mine[i] = c
	}
	return mine
}
