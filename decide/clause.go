package decide

import (
	"errors"
	"math"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// manner is the way in which a clause is decided in one round.
type manner uint8

const (
	// charging takes the whole quantity, or refuses the clause.
	charging manner = iota
	// peeking decides the clause and plans no change.
	peeking
	// denied decides the clause as peeking does, but plans the change that a refusal stores.
	denied
	// searching looks for the token of the call among the calls that the key remembers, and decides
	// nothing.
	searching
	// repeating decides the clause with a quantity of 0, for the repetition of a remembered call.
	repeating
	// sharing grants the clause as many of its units as possible.
	sharing
	// granting grants the clause as many units as all clauses of the call can grant.
	granting
	// exhausted decides the clause as denied does, for a Partial that was granted no unit.
	exhausted
	// noting decides the clause as peeking does, and records a reservation without units.
	noting
)

// fits reports whether the clause can use a key of kind k.
func (c *Clause) fits(k entry.Kind) bool {
	return k == entry.None || c.Unlimited || c.Window != nil && k.IsWindow() || c.Bucket != nil && k.IsBucket() ||
		c.Lease != nil && k.IsLease() || c.Quota != nil && (k == entry.Cell || k == entry.String)
}

// decideClause decides the clause c on e at now, writes the answer to d and fills in the plan. The
// manner as must be charging, peeking or denied. The error is [limit.ErrWrongType] or an error of
// the family. The quantity and the charge of c are the same afterwards as before.
func (p *Plan) decideClause(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause, as manner) (err error) {
	switch {
	case c.Unlimited:
		p.Action, p.Frees, p.Foreign = Keep, false, false
		*d = unlimited
		return nil
	case c.Window != nil:
		was := c.Window.Charge
		if as != charging {
			c.Window.Charge = slidingwindow.Peek
		}
		err = p.decideWindow(d, e, now, c.Window)
		c.Window.Charge = was
	case c.Bucket != nil:
		was := c.Bucket.Charge
		if as == peeking {
			c.Bucket.Charge = tokenbucket.Peek
		}
		c.Bucket.Denied = as == denied
		err = p.decideBucket(d, e, now, c.Bucket)
		c.Bucket.Charge, c.Bucket.Denied = was, false
	case c.Lease != nil:
		looks := c.Lease.Peek
		c.Lease.Peek = looks || as != charging
		err = p.decideLease(d, e, now, c.Lease)
		if c.Lease.Peek = looks; looks { // a peek acquires no lease, so it cannot refuse one
			d.Refused, d.RetryAfter = 0, limit.NoRetry
		}
	case c.Force && as == charging:
		err = p.forceCell(d, e, now, c.Quota, c.Quantity)
	default:
		err = p.decideCell(d, e, now, c.Quota, c.Quantity)
		if err == nil && as != charging {
			p.leaveCell(d, e, now, c.Quota)
		}
	}
	if c.Force && as == charging && !c.takes() && d.Limit > 0 {
		d.Refused = 0 // a bucket in debt denies a quantity of 0, which would deny a call that settles other clauses
	}
	if as == peeking {
		p.Action = Keep
	}
	return err
}

// Unlimited is the limit, and the number of remaining units, in the answer of a clause without a limit. It is
// the greatest number of the protocol of Envoy's rate limit service.
const Unlimited = math.MaxUint32

// unlimited is the decision on a clause without a limit.
var unlimited = limit.Decision{Limit: Unlimited, Remaining: Unlimited, RetryAfter: limit.NoRetry}

// chargeDenied charges the clause c of a denied call, as if it were forced. d is the decision on the clause
// alone, which may pass if the call is denied because of other clauses, and becomes the answer. If the
// state cannot hold the charge, the clause is decided as without Counts.
func (p *Plan) chargeDenied(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause) (err error) {
	was := *d
	switch {
	case c.Window != nil:
		was := c.Window.Charge
		c.Window.Charge = slidingwindow.Force
		err = p.decideWindow(d, e, now, c.Window)
		c.Window.Charge = was
	case c.Bucket != nil:
		was := c.Bucket.Charge
		c.Bucket.Charge = tokenbucket.Force
		err = p.decideBucket(d, e, now, c.Bucket)
		c.Bucket.Charge = was
	default:
		err = p.forceCell(d, e, now, c.Quota, c.Quantity)
	}
	if errors.Is(err, limit.ErrOverflow) {
		return p.decideClause(d, e, now, c, denied)
	}
	p.counted = true
	if d.Refused = was.Refused; was.RetryAfter == limit.NoRetry || d.RetryAfter == limit.NoRetry {
		d.RetryAfter = was.RetryAfter
	}
	return err
}

// leaveCell plans no change of the cell e, and sets Remaining and ResetAfter of d to the values
// that they have without the call.
func (p *Plan) leaveCell(d *limit.Decision, e *entry.Entry, now limit.Instant, q *gcra.Quota) {
	p.Action = Keep
	tat, _ := entry.StoredTAT(e) // an error is impossible, because the TAT was just read
	var is limit.Decision
	gcra.DecideInto(&is, tat, now, q, 0)
	d.Remaining, d.ResetAfter = is.Remaining, is.ResetAfter
}

// decidePart decides the clause c of a Partial. The manner as must be sharing, granting or
// exhausted. A lease and a clause that is Fixed count as one unit. When granting, the clause takes
// as many units as the parameter units says; a lease or a Fixed clause is taken as a whole. When
// sharing, d.Refused is the number of units that were not granted. When exhausted, d.Refused is the
// number of all units, or 0 if the clause could grant at least one unit.
func (p *Plan) decidePart(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause, as manner, units int64) (err error) {
	quantity := c.units()
	switch {
	case as == sharing && c.keeps():
		return p.shareKeeping(d, e, now, c)
	case as == sharing:
		return p.share(d, e, now, c)
	case quantity == nil && as == granting:
		return p.decideClause(d, e, now, c, charging)
	case quantity == nil:
		return p.judge(d, e, now, c, denied)
	}
	asked := *quantity
	if as == granting {
		*quantity = units
		err = p.decideClause(d, e, now, c, charging)
	} else {
		*quantity = 1
		err = p.judge(d, e, now, c, denied)
		d.Refused *= asked
	}
	*quantity = asked
	return err
}

// share grants the clause c as many units as possible, independently of the other clauses.
// d.Refused is the number of units that were not granted.
func (p *Plan) share(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause) (err error) {
	switch {
	case c.Fixed:
		err = p.decideClause(d, e, now, c, charging)
	case c.Window != nil:
		was := c.Window.Charge
		c.Window.Charge = slidingwindow.Partial
		err = p.decideWindow(d, e, now, c.Window)
		c.Window.Charge = was
	case c.Bucket != nil:
		was := c.Bucket.Charge
		c.Bucket.Charge = tokenbucket.Partial
		err = p.decideBucket(d, e, now, c.Bucket)
		c.Bucket.Charge = was
	case c.Lease != nil:
		err = p.decideLease(d, e, now, c.Lease)
	default:
		err = p.shareCell(d, e, now, c.Quota, c.Quantity)
	}
	return err
}
