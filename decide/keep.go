package decide

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// keeps reports whether the clause has to leave units for others, and is denied if too few would remain. It is false
// for a forced clause, and for one that takes nothing.
func (c *Clause) keeps() bool {
	switch {
	case c.Keep == 0 || c.Force || c.Unlimited:
		return false
	case c.Lease != nil:
		return true
	case c.Window != nil && c.Window.Charge == slidingwindow.Force, c.Bucket != nil && c.Bucket.Charge == tokenbucket.Force:
		return false
	}
	return *c.quantity() > 0
}

// spare decides on e at now whether the clause c can take its quantity so that c.Keep units remain for others, and
// writes the answer to d. It plans no change. A call that takes q units and leaves k is decided like a call that takes
// q + k units, with the same RetryAfter. In a lease set this holds for the places that the member does not hold yet. A
// bucket with Debt lends no tokens to a call that has to leave units.
func (p *Plan) spare(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause) (err error) {
	switch {
	case c.Window != nil:
		call := *c.Window
		call.Quantity, call.Even, call.Charge = limit.SatAdd(call.Quantity, c.Keep), false, slidingwindow.Peek
		err = p.decideWindow(d, e, now, &call)
	case c.Bucket != nil:
		err = p.spareTokens(d, e, now, c.Bucket, c.Keep)
	case c.Lease != nil:
		call := *c.Lease
		call.Peek = true
		if call.Limit > 0 {
			if call.Limit = limit.SatSub(call.Limit, c.Keep); call.Limit == 0 {
				call.Limit = -1 // a limit of -1 passes only members that hold places, and 0 passes no member
			}
		}
		err = p.decideLease(d, e, now, &call)
	default:
		err = p.decideCell(d, e, now, c.Quota, limit.SatAdd(c.Quantity, c.Keep))
	}
	if q := c.quantity(); err == nil && q != nil && c.Keep > math.MaxInt64-*q {
		d.Refused, d.RetryAfter = 1, limit.NoRetry // the sum of both is more than any limit
	}
	p.Action, p.Foreign = Keep, false
	return err
}

// spareTokens does what spare does, for a bucket.
func (p *Plan) spareTokens(
	d *limit.Decision, e *entry.Entry, now limit.Instant, c *tokenbucket.Call, keep int64,
) error {
	quantity, charge := c.Quantity, c.Charge // c itself is changed and restored, because a copy of c would be allocated
	defer func() { c.Quantity, c.Charge = quantity, charge }()
	units := limit.SatAdd(quantity, keep)
	c.Charge = tokenbucket.Peek
	if c.Mode != tokenbucket.Debt {
		c.Quantity = units
		return p.decideBucket(d, e, now, c)
	}
	c.Quantity = 0
	err := p.decideBucket(d, e, now, c)
	if err != nil || units <= d.Remaining {
		return err
	}
	if d.Refused, d.RetryAfter = 1, limit.NoRetry; units <= c.Capacity {
		// ResetAfter is the time until there are Capacity tokens.
		d.RetryAfter = d.ResetAfter - time.Duration(limit.SatMul(c.Capacity-units, int64(c.Interval)))
	}
	return nil
}

// judge decides the clause c as decideClause does, or denies it because it would leave too little for others.
func (p *Plan) judge(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause, as manner) error {
	if !c.keeps() {
		return p.decideClause(d, e, now, c, as)
	}
	var spare limit.Decision
	if err := p.spare(&spare, e, now, c); err != nil {
		return err
	}
	if spare.Refused > 0 && as == charging {
		as = denied
	}
	if err := p.decideClause(d, e, now, c, as); err != nil || spare.Refused == 0 {
		return err
	}
	if never := d.Refused > 0 && d.RetryAfter == limit.NoRetry; spare.RetryAfter == limit.NoRetry || never {
		d.RetryAfter = limit.NoRetry
	} else {
		d.RetryAfter = max(d.RetryAfter, spare.RetryAfter)
	}
	d.Refused = 1
	return nil
}

// shareKeeping grants the clause c as many of its units as leave c.Keep for others. d.Refused is the number of units
// that were not granted.
func (p *Plan) shareKeeping(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause) error {
	quantity := c.units()
	if quantity == nil {
		return p.judge(d, e, now, c, charging)
	}
	asked := *quantity
	defer func() { *quantity = asked }()
	free, err := p.free(d, e, now, c)
	if err != nil {
		return err
	}
	granted := min(asked, free-c.Keep)
	if granted > 0 {
		*quantity = granted
		err = p.share(d, e, now, c) // share may grant less than the whole quantity
		granted -= d.Refused
	}
	if granted <= 0 && err == nil {
		*quantity = 1
		err = p.judge(d, e, now, c, denied)
		granted = 0
	}
	d.Refused = asked - granted
	return err
}

// free returns the number of units that the clause c could take at once, without Even. It overwrites the quantity of c
// and the plan, which the caller must not apply.
func (p *Plan) free(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause) (int64, error) {
	*c.quantity() = math.MaxInt64
	if w := c.Window; w != nil && w.Even {
		w.Even = false
		defer func() { w.Even = true }()
	}
	err := p.share(d, e, now, c)
	return math.MaxInt64 - d.Refused, err
}
