package decide

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// manner is how a clause is decided.
type manner uint8

const (
	// charging takes the whole quantity, or refuses the call.
	charging manner = iota
	// peeking decides without a change.
	peeking
	// denied decides as peeking does, and plans what a refusal stores.
	denied
	// sharing grants each clause as many of its units as it can.
	sharing
	// granting grants every clause the number of units of the clause with the fewest.
	granting
	// exhausted is denied for a call of which not even one unit could be granted.
	exhausted
)

// fits reports whether a key of this kind can be used by the clause.
func (c *Clause) fits(k entry.Kind) bool {
	return k == entry.None || c.Window != nil && k.IsWindow() || c.Bucket != nil && k.IsBucket() ||
		c.Lease != nil && k.IsLease() || c.Quota != nil && (k == entry.Cell || k == entry.String)
}

// decideClause is One for a clause. as is one of the first three manners.
func (p *Plan) decideClause(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause, as manner) (err error) {
	switch {
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
		if c.Lease.Peek = looks; looks { // a peek takes no place, so it refuses nothing
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
	if as == peeking {
		p.Action = Keep
	}
	return err
}

// leaveCell plans no change of a cell and sets d accordingly.
func (p *Plan) leaveCell(d *limit.Decision, e *entry.Entry, now limit.Instant, q *gcra.Quota) {
	p.Action = Keep
	tat, _ := entry.StoredTAT(e) // it was just read without an error
	var is limit.Decision
	gcra.DecideInto(&is, tat, now, q, 0)
	d.Remaining, d.ResetAfter = is.Remaining, is.ResetAfter
}

// decidePart decides a clause of a Partial in one of the last three manners. units is how many it
// takes when granting. d.Refused is how many units were not granted when sharing. When exhausted it
// is all or none: a clause that could grant one unit refuses none.
func (p *Plan) decidePart(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause, as manner, units int64) (err error) {
	quantity := c.units()
	switch {
	case as == sharing:
		return p.share(d, e, now, c)
	case quantity == nil && as == granting:
		return p.decideClause(d, e, now, c, charging)
	case quantity == nil:
		return p.decideClause(d, e, now, c, denied)
	}
	asked := *quantity
	if as == granting {
		*quantity = units
		err = p.decideClause(d, e, now, c, charging)
	} else {
		*quantity = 1
		err = p.decideClause(d, e, now, c, denied)
		d.Refused *= asked
	}
	*quantity = asked
	return err
}

// share grants a clause as many units as it can, independently of the other clauses.
func (p *Plan) share(d *limit.Decision, e *entry.Entry, now limit.Instant, c *Clause) (err error) {
	switch {
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
